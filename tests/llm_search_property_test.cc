// The proof of pruning: on random small experiments, under random plans of their LLM, the lower
// bound of a candidate never exceeds its step, neither by the critical path nor by the simulator;
// and a search that prunes by it finds what simulating everything finds.
// RC_PARAMS (the guide of rapidcheck) overrides the seed and the number of cases.

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "rapidcheck/gtest.h"
#include "schedule/colocate/optimus.h"
#include "schedule/ir/critical_path.h"
#include "schedule/llm_search/best_first.h"
#include "schedule/llm_search/examine.h"
#include "schedule/step/check.h"
#include "schedule/step/stack.h"
#include "schedule/step/testing.h"
#include "sim/simgrid_runner.h"
#include "tests/random_models.h"

namespace optimus {
namespace {

using testing::Any;
using testing::Take;
using testing::WriteModel;

using llm_search::Candidate;
using llm_search::Examined;

// The same cases in every run; rapidcheck reads this at the first property.
const bool kCases = setenv("RC_PARAMS", "seed=20261130 max_success=250", /*overwrite=*/0) == 0;

std::string AnyEncoder(int index) {
  const int width = 64 * *rc::gen::inRange(1, 33).as("encoder width / 64");
  const int layers = *rc::gen::inRange(1, 7).as("encoder layers");
  const int sequences = *rc::gen::element(1, 2, 4).as("sequences a sample");
  return absl::StrCat(
      "encoders { model: \"", WriteModel(absl::StrCat("vit-", index), width, layers, false),
      "\" sequences_per_sample: ", sequences, " sequence_length: 512 sequences_per_slice: ",
      *rc::gen::element(0, 1, 2).as("sequences a slice"),
      *rc::gen::weightedElement<bool>({{4, false}, {1, true}}).as("frozen") ? " frozen: true" : "",
      " }\n");
}

// Before its defaults are filled in. `gpus` up to 16, two nodes.
step::Experiment AnyBase(int gpus, int layers, int global_batch) {
  const int width = 128 * *rc::gen::inRange(1, 17).as("LLM width / 128");
  const std::string warm_up = Any({"MEGATRON", "DEFERRED", "BEST"}, "warm-up");
  const std::string communication = Any({"DP_EXPOSED", "DP_OVERLAPPED"}, "LLM data parallel");
  const std::string scheduler = Any({"PAPER", "LIST"}, "scheduler");
  const std::string encoder_communication =
      Any({"ENCODER_DP_LAYERWISE", "ENCODER_DP_EXPOSED", "ENCODER_DP_NONE"}, "encoder's");
  const std::string flags =
      Any({"", "no_distributed_optimizer: true", "no_optimizer: true", "no_sequence_parallel: true",
           "synchronous_messages: true no_backward_overlap: true"},
          "flags");
  const std::string slow =
      Any({"", "slow_gpus { rank: 0 factor: 0.5 }", "slow_gpus { rank: 0 factor: 2 }"}, "slow");
  std::string text = absl::StrCat(
      "name: \"random\" llm: \"", WriteModel("llm", width, layers, true),
      "\" hardware { profile: \"h100-80gb\" gpus: ", gpus, " ", slow,
      " } batch { global_batch: ", global_batch, " micro_batch: 1 sequence_length: 512 } ",
      "plan { schedule: INTERLEAVED warm_up: ", warm_up, " dp_communication: ", communication, " ",
      flags, " optimus { scheduler: ", scheduler, " encoder_data_parallel: ", encoder_communication,
      " } }\n");
  const int encoders = *rc::gen::inRange(0, 3).as("encoders");
  for (int k = 0; k < encoders; ++k) text += AnyEncoder(k);
  step::Experiment base;
  RC_ASSERT(google::protobuf::TextFormat::ParseFromString(text, &base));
  return base;
}

const hw::ProfileCostModel& Costs() {
  static const auto* costs = new hw::ProfileCostModel(step::testing::Costs());
  return *costs;
}

ir::Schedule Build(const step::Experiment& experiment) {
  if (experiment.plan().strategy() == step::Plan::OPTIMUS) {
    return Take(colocate::BuildOptimusStep(experiment, Costs(), {})).step.schedule;
  }
  return Take(step::BuildStep(experiment, Costs())).schedule;
}

Picoseconds Simulated(const step::Experiment& experiment, const ir::Schedule& schedule) {
  sim::Options options;
  for (const step::Hardware::SlowGpu& slow : experiment.hardware().slow_gpus()) {
    options.slow_gpus.push_back({slow.rank(), slow.factor()});
  }
  return Take(sim::SimGridRunner(Costs(), options).Run(schedule)).step;
}

std::vector<Candidate> Candidates(const step::Experiment& base, int layers) {
  step::Experiment whole =
      llm_search::Apply(base, {step::Plan::PIPELINE, 1, 1, 1, 1, 1, step::Plan::RECOMPUTE_NONE});
  step::FillDefaults(whole);
  const int all_layers = Take(step::BuildStack(whole)).layers();
  return llm_search::Enumerate({base.hardware().gpus(), Costs().gpus_per_node(), layers,
                                all_layers - layers, base.batch().global_batch(),
                                base.batch().micro_batch(), base.encoders_size() > 0});
}

RC_GTEST_PROP(LlmSearchProperty, TheBoundNeverExceedsTheStep, ()) {
  const int gpus = *rc::gen::element(1, 2, 4, 8, 12, 16).as("GPUs");
  const int layers = *rc::gen::inRange(1, 13).as("LLM layers");
  const int global_batch = *rc::gen::inRange(1, 17).as("global batch");
  const step::Experiment base = AnyBase(gpus, layers, global_batch);
  const std::vector<Candidate> all = Candidates(base, layers);
  const Candidate candidate = *rc::gen::elementOf(all).as("candidate");
  llm_search::Examiner examiner(base, Costs());
  const Examined examined = examiner.Examine(candidate);
  RC_TAG(static_cast<int>(examined.verdict));
  if (examined.verdict != Examined::Verdict::kBounded) return;
  RC_LOG() << llm_search::ToString(candidate) << "\n" << examined.experiment.DebugString();
  const ir::Schedule schedule = Build(examined.experiment);
  const std::int64_t bound = examined.bounds.step().value();
  RC_ASSERT(bound > 0);
  RC_ASSERT(bound <= Simulated(examined.experiment, schedule).value());
  if (examined.experiment.hardware().slow_gpus_size() > 0) return;
  RC_ASSERT(bound <= Take(ir::CriticalPathRunner(Costs()).Run(schedule)).step.value());
}

// What an experiment is refused with when it is built is what it was examined with, or nothing.
RC_GTEST_PROP(LlmSearchProperty, WhatIsImpossibleIsRefusedByTheExperimentToo, ()) {
  const int gpus = *rc::gen::element(2, 6, 8).as("GPUs");
  const int layers = *rc::gen::inRange(1, 9).as("LLM layers");
  const step::Experiment base = AnyBase(gpus, layers, *rc::gen::inRange(1, 13).as("global batch"));
  const Candidate candidate = *rc::gen::elementOf(Candidates(base, layers)).as("candidate");
  llm_search::Examiner examiner(base, Costs());
  const Examined examined = examiner.Examine(candidate);
  step::Experiment experiment = llm_search::Apply(base, candidate);
  const absl::Status complete = step::CompleteExperiment(experiment);
  if (examined.verdict == Examined::Verdict::kImpossible) {
    if (!complete.ok()) RC_ASSERT(examined.reason == std::string(complete.message()));
    return;
  }
  RC_ASSERT(complete.ok());
  RC_ASSERT(experiment.SerializeAsString() == examined.experiment.SerializeAsString());
}

// The slow twin of the search: everything that fits is built and run.
struct Found {
  std::optional<std::pair<Picoseconds, std::int64_t>> best;
  std::int64_t runs = 0;
};

Found Exhaustive(const std::vector<Examined>& examined) {
  Found found;
  ir::CriticalPathRunner runner(Costs());
  for (std::size_t i = 0; i < examined.size(); ++i) {
    if (examined[i].verdict != Examined::Verdict::kBounded) continue;
    ++found.runs;
    const std::pair<Picoseconds, std::int64_t> here{
        Take(runner.Run(Build(examined[i].experiment))).step, i};
    if (!found.best || here < *found.best) found.best = here;
  }
  return found;
}

Found Pruned(const std::vector<Examined>& examined) {
  std::vector<llm_search::Bounded> bounded;
  for (std::size_t i = 0; i < examined.size(); ++i) {
    if (examined[i].verdict != Examined::Verdict::kBounded) continue;
    bounded.push_back({static_cast<std::int64_t>(i), examined[i].bounds.step()});
  }
  llm_search::BestFirst search(std::move(bounded), std::nullopt);
  Found found;
  ir::CriticalPathRunner runner(Costs());
  while (const std::optional<std::int64_t> next = search.Next()) {
    ++found.runs;
    const Picoseconds step =
        Take(runner.Run(Build(examined[static_cast<std::size_t>(*next)].experiment))).step;
    search.Done(*next, step);
    if (!found.best || std::pair(step, *next) < *found.best) found.best = {step, *next};
  }
  return found;
}

TEST(LlmSearchTwin, PruningFindsTheBestOfAll) {
  std::int64_t all_runs = 0, pruned_runs = 0;
  rc::check("the same best plan", [&] {
    const int gpus = *rc::gen::element(2, 4, 8).as("GPUs");
    const int layers = *rc::gen::element(2, 4, 6).as("LLM layers");
    const step::Experiment base = AnyBase(gpus, layers, *rc::gen::element(4, 8).as("batch"));
    llm_search::Examiner examiner(base, Costs());
    std::vector<Examined> examined;
    // A part of them, spread over all, keeps the twin in seconds.
    const std::vector<Candidate> all = Candidates(base, layers);
    for (std::size_t i = 0; i < all.size(); i += 1 + all.size() / 25) {
      examined.push_back(examiner.Examine(all[i]));
    }
    const Found slow = Exhaustive(examined);
    const Found fast = Pruned(examined);
    RC_ASSERT(slow.best == fast.best);
    all_runs += slow.runs;
    pruned_runs += fast.runs;
  });
  EXPECT_LT(pruned_runs, all_runs);  // or nothing was pruned, and nothing shown
}

}  // namespace
}  // namespace optimus
