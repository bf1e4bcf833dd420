#include "schedule/llm_search/examine.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/colocate/optimus.h"
#include "schedule/step/testing.h"

namespace optimus::llm_search {
namespace {

using ::testing::HasSubstr;
using Verdict = Examined::Verdict;

const hw::ProfileCostModel& Costs() {
  static const auto* costs = new hw::ProfileCostModel(step::testing::Costs());
  return *costs;
}

step::Experiment Base(int gpus, int global_batch, const std::string& encoders = "",
                      const std::string& llm = "examples/models/gpt-2b.textproto") {
  step::Experiment base;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat(
          "name: \"small\" llm: \"", llm, "\" hardware { profile: \"h100-80gb\" gpus: ", gpus,
          " } batch { global_batch: ", global_batch,
          " micro_batch: 1 sequence_length: 1024 } plan { layout: EQUAL_LAYERS } ", encoders),
      &base));
  return base;
}

constexpr char kEncoder[] =
    "encoders { model: \"examples/models/vit-300m.textproto\" sequences_per_sample: 2 "
    "sequence_length: 512 sequences_per_slice: 1 }";

Examined Examine(const step::Experiment& base, const Candidate& candidate) {
  Examiner examiner(base, Costs());
  return examiner.Examine(candidate);
}

Candidate Pipeline(int dp, int pp, int tp, int chunks = 1) {
  return {step::Plan::PIPELINE, dp, pp, tp, chunks, 1, step::Plan::RECOMPUTE_FULL};
}

Picoseconds StepOf(const Examined& examined) {
  return step::testing::StepTime(step::testing::Build(examined.experiment, Costs()), Costs());
}

TEST(Examine, OfOneGpuTheBoundIsTheStep) {
  const Examined examined = Examine(Base(1, 4), Pipeline(1, 1, 1));
  ASSERT_EQ(examined.verdict, Verdict::kBounded) << examined.reason;
  EXPECT_EQ(examined.bounds.step(), StepOf(examined));
}

TEST(Examine, OfPipelinesTheBoundIsCloseAndBelow) {
  for (const Candidate& candidate :
       {Pipeline(1, 4, 1), Pipeline(2, 2, 1), Pipeline(1, 1, 4), Pipeline(1, 4, 1, 2)}) {
    const Examined examined = Examine(Base(4, 16), candidate);
    ASSERT_EQ(examined.verdict, Verdict::kBounded) << examined.reason;
    const Picoseconds step = StepOf(examined);
    EXPECT_LE(examined.bounds.step(), step) << ToString(candidate);
    EXPECT_GT(ToSeconds(examined.bounds.step()), 0.95 * ToSeconds(step)) << ToString(candidate);
  }
}

TEST(Examine, EncodersAroundTheLlmMakeTheBoundLonger) {
  Candidate candidate = Pipeline(1, 4, 2);
  const Examined alone = Examine(Base(8, 8), candidate);
  candidate.strategy = step::Plan::OPTIMUS;
  const Examined with = Examine(Base(8, 8, kEncoder), candidate);
  ASSERT_EQ(with.verdict, Verdict::kBounded) << with.reason;
  EXPECT_GT(with.bounds.pipeline, alone.bounds.pipeline);
  EXPECT_GT(with.bounds.work, alone.bounds.work);
  const auto planned = colocate::BuildOptimusStep(with.experiment, Costs(), {});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LE(with.bounds.step(), step::testing::StepTime(planned->step, Costs()));
}

TEST(Examine, MemoryIsWhatTheStepNeeds) {
  for (const Candidate& candidate : {Pipeline(1, 4, 2), Pipeline(4, 2, 1), Pipeline(1, 4, 2, 3)}) {
    const Examined examined = Examine(Base(8, 16), candidate);
    ASSERT_EQ(examined.verdict, Verdict::kBounded) << examined.reason;
    Bytes most;
    for (const auto& stage : step::testing::Build(examined.experiment, Costs()).memory) {
      most = std::max(most, stage.total());
    }
    EXPECT_EQ(examined.memory, most);
  }
}

TEST(Examine, WhatDoesNotFitIsTooLarge) {
  const Examined examined = Examine(Base(8, 8, "", "gpt-175b"), Pipeline(1, 1, 8));
  EXPECT_EQ(examined.verdict, Verdict::kTooLarge);
  EXPECT_GT(examined.memory, Costs().memory_capacity());
}

TEST(Examine, WhatCannotBeIsRefusedWithTheExperimentsWords) {
  const Examined batch = Examine(Base(8, 9), Pipeline(8, 1, 1));
  EXPECT_EQ(batch.verdict, Verdict::kImpossible);
  EXPECT_THAT(batch.reason, HasSubstr("batch.global_batch: 9 is not a multiple"));
  const Examined group = Examine(Base(4, 6), Pipeline(1, 4, 1, 2));
  EXPECT_EQ(group.verdict, Verdict::kImpossible);
  EXPECT_THAT(group.reason, HasSubstr("plan.micro_batch_group: 6 micro-batches"));
}

}  // namespace
}  // namespace optimus::llm_search
