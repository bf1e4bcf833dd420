// Every pipeline schedule through the simulator: SimGrid and the plain critical path agree where
// nothing contends, every granularity gives the same step, and every idle picosecond has a cause.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "schedule/colocate/optimus.h"
#include "schedule/step/check.h"
#include "tests/run_experiment.h"

namespace optimus {
namespace {

step::Experiment Parse(const std::string& text) {
  step::Experiment experiment;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &experiment)) << text;
  step::FillDefaults(experiment);
  return experiment;
}

// Times of Qi et al., arXiv 2401.10241, Table 9 (14.6 B parameters), on half of the stages.
step::Experiment Profiled(const std::string& schedule) {
  return Parse(absl::StrCat(
      "name: 'profiled' profiled { forward_ms: 11.347 backward_ms: 11.248 weight_ms: 8.132 ",
      "communication_ms: 0.377 } hardware { profile: 'h100-80gb' gpus: 8 } ",
      "batch { global_batch: 24 micro_batch: 1 } plan { data_parallel: 1 pipeline_parallel: 8 ",
      "tensor_parallel: 1 no_optimizer: true schedule: ", schedule, " }"));
}

step::Experiment Llm(const std::string& schedule) {
  return Parse(absl::StrCat(
      "name: 'llm' llm: 'gpt-11b' hardware { profile: 'h100-80gb' gpus: 64 } ",
      "batch { global_batch: 64 micro_batch: 2 sequence_length: 2048 } plan { data_parallel: 2 ",
      "pipeline_parallel: 4 tensor_parallel: 8 layout: EQUAL_LAYERS recompute: ",
      "RECOMPUTE_SELECTIVE schedule: ", schedule, " }"));
}

step::Experiment Optimus(const std::string& schedule) {
  return Parse(absl::StrCat(
      "name: 'optimus' llm: 'gpt-11b' encoders { model: 'vit-3b' sequences_per_sample: 1 ",
      "sequence_length: 1024 } hardware { profile: 'h100-80gb' gpus: 32 } ",
      "batch { global_batch: 16 micro_batch: 2 sequence_length: 2048 } plan { data_parallel: 1 ",
      "pipeline_parallel: 4 tensor_parallel: 8 strategy: OPTIMUS schedule: ", schedule, " }"));
}

ir::Timeline CriticalPath(const testing::Built& built) {
  const auto timeline = ir::CriticalPathRunner(*built.costs).Run(built.step.schedule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : ir::Timeline();
}

class Schedules : public ::testing::TestWithParam<const char*> {};

TEST_P(Schedules, MeasuredStagesTakeAsLongAsTheCriticalPath) {
  const auto built = testing::Build(Profiled(GetParam()));
  ASSERT_TRUE(built.ok()) << built.status();
  const ir::Timeline path = CriticalPath(*built);
  for (const auto fidelity : {sim::Fidelity::kFolded, sim::Fidelity::kGpu}) {
    const auto timeline = testing::Simulate(*built, fidelity);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    EXPECT_EQ(timeline->step, path.step);
    ASSERT_EQ(timeline->entities.size(), path.entities.size());
    for (std::size_t i = 0; i < path.entities.size(); ++i) {
      EXPECT_EQ(timeline->entities[i].account, path.entities[i].account) << i;
    }
  }
}

TEST_P(Schedules, ModelsTakeAsLongAtEveryGranularity) {
  const auto built = testing::Build(Llm(GetParam()));
  ASSERT_TRUE(built.ok()) << built.status();
  const auto folded = testing::Simulate(*built, sim::Fidelity::kFolded);
  const auto gpus = testing::Simulate(*built, sim::Fidelity::kGpu);
  ASSERT_TRUE(folded.ok() && gpus.ok()) << folded.status() << gpus.status();
  EXPECT_EQ(folded->step, gpus->step);
  EXPECT_GE(folded->step, CriticalPath(*built).step);
  for (const ir::EntityAccount& entity : gpus->entities) {
    EXPECT_EQ(entity.account.total(), gpus->step) << "rank " << entity.rank;
  }
}

// The order of an OPTIMUS step comes from predicted times, and it never takes longer than they say.
TEST_P(Schedules, EncodersInTheBubblesTakeNoLongerThanPredicted) {
  for (const auto scheduler : {step::Optimus::PAPER, step::Optimus::LIST}) {
    const step::Experiment experiment = Optimus(GetParam());
    const auto profile = step::LoadExperimentProfile(experiment);
    ASSERT_TRUE(profile.ok()) << profile.status();
    const hw::ProfileCostModel costs(*profile);
    colocate::PlanOptions options;
    options.scheduler = scheduler;
    const auto planned = colocate::BuildOptimusStep(experiment, costs, options);
    if (experiment.plan().schedule() == step::Plan::DUALPIPE) {
      EXPECT_EQ(planned.status().code(), absl::StatusCode::kUnimplemented) << planned.status();
      continue;
    }
    ASSERT_TRUE(planned.ok()) << planned.status();
    ASSERT_TRUE(ir::Validate(planned->step.schedule).ok()) << ir::Validate(planned->step.schedule);
    const auto path = ir::CriticalPathRunner(costs).Run(planned->step.schedule);
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_LE(path->step, planned->plan.ranked.front().predicted);
    EXPECT_GE(path->step, planned->plan.ranked.front().llm_step);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Schedules,
                         ::testing::Values("GPIPE", "ONE_F_ONE_B", "INTERLEAVED model_chunks: 2",
                                           "ZB_H1", "ZB_H2", "ZB_1P", "ZB_2P", "ZB_V", "DUALPIPE",
                                           "DUALPIPE_V"));

}  // namespace
}  // namespace optimus
