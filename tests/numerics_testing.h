#pragma once
// Small multimodal models that are trained by a Schedule, for tests.

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/numerics/compare.h"
#include "executor/numerics/numerics.h"
#include "executor/numerics/workload.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "models/zoo.h"
#include "schedule/colocate/optimus.h"
#include "schedule/ir/validate.h"
#include "schedule/step/testing.h"
#include "tests/numerics_engine.h"

namespace optimus::testing {

// A model file of this process: `more` replaces what stands here.
inline std::string WriteModel(const std::string& name, const std::string& more) {
  models::ModelConfig config;
  for (const std::string& text :
       {absl::StrCat("name: \"", name, "\" hidden_size: 32 num_layers: 4 ffn_hidden_size: 64 "),
        std::string("num_attention_heads: 4 activation: GELU norm: LAYER_NORM linear_bias: true "
                    "source: \"test\" "),
        more}) {
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(text, &config)) << text;
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  std::string path =
      absl::StrCat(::testing::TempDir(), "numerics-", getpid(), "-", name, ".textproto");
  std::ofstream(path) << text;
  return path;
}
inline std::string Llm(const std::string& more = "") {
  return WriteModel("gpt",
                    "attention: CAUSAL vocabulary_size: 64 max_position_embeddings: 16 " + more);
}
// `name` tells the files of several encoders apart.
inline std::string Vit(const std::string& name = "vit", const std::string& more = "") {
  return WriteModel(name, "hidden_size: 16 num_layers: 2 attention: FULL " + more);
}

// What stands inside of encoders { }.
inline std::string Encoder(const std::string& model, const std::string& more = "") {
  return absl::StrCat("model: \"", model,
                      "\" sequences_per_sample: 2 sequence_length: 8 sequences_per_slice: 2 ",
                      more);
}
inline std::vector<std::string> TwoEncoders(const std::string& first = "",
                                            const std::string& second = "") {
  return {Encoder(Vit(), first),
          absl::StrCat("model: \"", Vit("audio", "hidden_size: 32 num_layers: 3 "),
                       "\" sequences_per_sample: 1 sequence_length: 24 sequences_per_slice: 1 ",
                       second)};
}

struct NumericsCase {
  int dp = 1, pp = 1, tp = 1;
  int micro_batches = 4;
  std::string plan;  // of the plan
  std::string llm = Llm();
  std::vector<std::string> encoders = {Encoder(Vit())};
};

inline NumericsCase CaseOf(int dp, int pp, int tp, const std::string& plan) {
  NumericsCase its;
  its.dp = dp;
  its.pp = pp;
  its.tp = tp;
  its.plan = plan;
  return its;
}

inline step::Experiment ExperimentOf(const NumericsCase& its) {
  constexpr int kMicroBatch = 2;
  std::string text = absl::StrCat(
      "name: \"numerics\" llm: \"", its.llm,
      "\" hardware { profile: \"h100-80gb\" gpus: ", its.dp * its.pp * its.tp,
      " } batch { global_batch: ", its.dp * its.micro_batches * kMicroBatch,
      " micro_batch: ", kMicroBatch, " sequence_length: 16 } plan { data_parallel: ", its.dp,
      " pipeline_parallel: ", its.pp, " tensor_parallel: ", its.tp, " ", its.plan, " }\n");
  for (const std::string& encoder : its.encoders) {
    absl::StrAppend(&text, "encoders { ", encoder, " }\n");
  }
  return step::testing::Parse(text);
}

inline absl::StatusOr<ir::Schedule> ScheduleOf(const step::Experiment& experiment) {
  static const auto* costs = new hw::ProfileCostModel(step::testing::Costs());
  ir::Schedule schedule;
  if (experiment.plan().strategy() == step::Plan::OPTIMUS) {
    OPTIMUS_ASSIGN_OR_RETURN(colocate::OptimusStep optimus,
                             colocate::BuildOptimusStep(experiment, *costs, {}));
    schedule = std::move(optimus.step.schedule);
  } else {
    OPTIMUS_ASSIGN_OR_RETURN(step::Step step, step::BuildStep(experiment, *costs));
    schedule = std::move(step.schedule);
  }
  OPTIMUS_RETURN_IF_ERROR(ir::Validate(schedule));
  return schedule;
}

inline absl::StatusOr<executor::NumericsModel> ModelOf(const step::Experiment& experiment) {
  executor::NumericsModel model;
  OPTIMUS_ASSIGN_OR_RETURN(model.llm, models::LoadModel(experiment.llm()));
  for (const step::Encoder& encoder : experiment.encoders()) {
    executor::NumericsEncoder out;
    OPTIMUS_ASSIGN_OR_RETURN(out.model, models::LoadModel(encoder.model()));
    out.sequences_per_sample = encoder.sequences_per_sample();
    out.sequence_length = encoder.sequence_length();
    out.sequences_per_slice = encoder.sequences_per_slice();
    out.frozen = encoder.frozen();
    const auto& without = encoder.micro_batches_without_input();
    out.micro_batches_without_input.assign(without.begin(), without.end());
    model.encoders.push_back(std::move(out));
  }
  model.micro_batch = experiment.batch().micro_batch();
  model.sequence_length = experiment.batch().sequence_length();
  model.global_batch = experiment.batch().global_batch();
  model.learning_rate = 0.1;
  return model;
}

// All ranks' workloads, and an engine that runs them.
struct Cluster {
  std::vector<std::unique_ptr<executor::numerics::NumericsWorkload>> workloads;
  std::vector<executor::Workload*> pointers() const {
    std::vector<executor::Workload*> pointers;
    pointers.reserve(workloads.size());
    for (const auto& workload : workloads) pointers.push_back(workload.get());
    return pointers;
  }
};

inline absl::StatusOr<Cluster> MakeCluster(const ir::Schedule& schedule,
                                           const executor::NumericsModel& model) {
  Cluster cluster;
  for (int rank = 0; rank < schedule.world.gpus(); ++rank) {
    OPTIMUS_ASSIGN_OR_RETURN(auto workload,
                             executor::numerics::NumericsWorkload::Make(schedule, rank, model));
    cluster.workloads.push_back(std::move(workload));
  }
  return cluster;
}

inline absl::StatusOr<executor::NumericsReport> Report(const ir::Schedule& schedule,
                                                       const executor::NumericsModel& model,
                                                       Cluster& cluster) {
  std::vector<std::string> results;
  for (auto& workload : cluster.workloads) {
    results.push_back(executor::numerics::EncodeResults(*workload));
  }
  return executor::numerics::CompareResults(schedule, model, results);
}

inline absl::StatusOr<executor::NumericsReport> Train(const ir::Schedule& schedule,
                                                      const executor::NumericsModel& model,
                                                      std::uint32_t seed, int steps = 2,
                                                      NumericsEngine::PutOff put_off = nullptr) {
  OPTIMUS_ASSIGN_OR_RETURN(Cluster cluster, MakeCluster(schedule, model));
  NumericsEngine engine(schedule, cluster.pointers(), seed);
  engine.SetPutOff(std::move(put_off));
  for (int step = 0; step < steps; ++step) OPTIMUS_RETURN_IF_ERROR(engine.Step(step));
  return Report(schedule, model, cluster);
}

// Three steps in each of `orders` random orders: loss and every gradient are the reference's.
inline void ExpectLearnsTheSame(const NumericsCase& its, int orders = 2) {
  constexpr double kTolerance = 1e-4;
  const step::Experiment experiment = ExperimentOf(its);
  const auto schedule = ScheduleOf(experiment);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const auto model = ModelOf(experiment);
  ASSERT_TRUE(model.ok()) << model.status();
  for (int seed = 0; seed < orders; ++seed) {
    const auto report = Train(*schedule, *model, seed, /*steps=*/3);
    ASSERT_TRUE(report.ok()) << its.plan << report.status();
    ASSERT_EQ(report->losses.size(), 3U);
    EXPECT_LT(report->worst_loss_error, kTolerance) << its.plan;
    EXPECT_LT(report->worst_gradient_error, kTolerance)
        << its.plan << report->gradients.front().name << " of " << report->gradients.size();
    // It does learn: otherwise a lost update would go unseen.
    EXPECT_GT(std::abs(report->reference_losses[2] - report->reference_losses[0]), 0.01);
  }
}

}  // namespace optimus::testing
