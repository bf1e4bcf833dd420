#include "schedule/bubble/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/testing_naive.h"
#include "schedule/bubble/testing_random.h"

namespace optimus::bubble {
namespace {

using ::testing::HasSubstr;

constexpr Picoseconds operator""_ps(unsigned long long value) {
  return Picoseconds(static_cast<std::int64_t>(value));
}

// Ops of two slices: the first has a kernel, a collective and a kernel, the second one kernel.
//   forward: k0 (slice 0), k1 (slice 1), c2 (slice 0), k3 (slice 0)
StageWork Work(Phase phase, std::int16_t layer, std::int32_t input_parts, std::int16_t part) {
  StageWork work;
  const auto add = [&](Resource resource, Picoseconds time, std::int32_t chain,
                       std::int16_t input_part, std::vector<std::uint32_t> after) {
    WorkOp op{resource, time, 0, phase, layer, static_cast<std::int16_t>(chain), input_part};
    op.first_dependency = static_cast<std::uint32_t>(work.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(after.size());
    work.dependencies.insert(work.dependencies.end(), after.begin(), after.end());
    work.ops.push_back(op);
    work.chain.push_back(chain);
    (resource == Resource::kCompute ? work.compute : work.link) += time;
  };
  const std::int16_t other = part < 0 || input_parts == 1 ? part : std::int16_t{1};
  add(Resource::kCompute, 4_ps, 0, part, {});
  add(Resource::kCompute, 6_ps, 1, other, {});
  add(Resource::kLink, 3_ps, 0, -1, {0});
  add(Resource::kCompute, 5_ps, 0, -1, {2});
  work.input_parts = input_parts;
  work.outputs = {3, 1};
  return work;
}

// Two LLM stages of two lanes, two micro-batches; one encoder of two stages on each lane.
Problem SmallProblem() {
  Problem problem;
  problem.lanes = 2;
  problem.tensor_parallel = 2;
  LlmStage stage;
  stage.first_start = 10_ps;
  stage.last_end = 110_ps;
  stage.compute_idle = {{40_ps, 60_ps}};
  stage.link_idle = {{10_ps, 40_ps}, {60_ps, 110_ps}};
  stage.compute = 80_ps;
  stage.gradients_reduced = 120_ps;
  problem.llm.stages = {stage, stage};
  problem.llm.forward_needed = {10_ps, 65_ps};
  problem.llm.backward_made = {90_ps, 110_ps};
  problem.llm.after_reduction = 7_ps;
  problem.llm.step = 127_ps;
  EncoderWork encoder;
  encoder.plan = {2, 1};
  encoder.micro_batches = {0, 1};
  encoder.forward = {Work(Phase::kForward, 0, 2, -1), Work(Phase::kForward, 1, 2, 0)};
  encoder.backward = {Work(Phase::kBackward, 0, 2, 0), Work(Phase::kBackward, 1, 1, 0)};
  encoder.forward_hop = {2_ps};
  encoder.backward_hop = {2_ps};
  encoder.to_llm = {1_ps, 1_ps};
  encoder.from_llm = {1_ps, 1_ps};
  encoder.sync.gathers = {{{0, 0, 8_ps, 0}}, {{1, 1, 8_ps, 0}}};
  encoder.sync.reductions = {{{0, 0, 9_ps, 0}}, {{1, 1, 9_ps, 0}}};
  problem.encoders = {encoder};
  return problem;
}

class VerifyFinds : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Verify(problem_, result_).ok()) << Verify(problem_, result_);
  }
  PlacedMicroBatch& micro_batch(int pipeline) {
    return result_.encoders[0].pipelines[pipeline].micro_batches[0];
  }
  std::string Fault() { return std::string(Verify(problem_, result_).message()); }
  std::string PaperFault() { return std::string(VerifyPaperRules(problem_, result_).message()); }

  Problem problem_ = SmallProblem();
  Result result_ = testing::NaiveResult(SmallProblem());
};

TEST_F(VerifyFinds, NothingWrongWithSimpleSchedulesOfRandomProblems) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    testing::Random random(seed);
    testing::RandomShape shape;
    shape.seed = seed;
    shape.stages = static_cast<std::int32_t>(random.Between(1, 4));
    shape.tensor_parallel = 1 << random.Between(0, 2);
    shape.encoders = static_cast<std::int32_t>(random.Between(1, 3));
    shape.micro_batches = static_cast<std::int32_t>(random.Between(0, 6));
    const Problem problem = testing::RandomProblem(shape);
    const Result result = testing::NaiveResult(problem);
    ASSERT_TRUE(Verify(problem, result).ok()) << Verify(problem, result) << " seed " << seed;
    ASSERT_TRUE(VerifyPaperRules(problem, result).ok())
        << VerifyPaperRules(problem, result) << " seed " << seed;
  }
}

TEST_F(VerifyFinds, AMissingStart) {
  micro_batch(0).forward[1].starts.pop_back();
  EXPECT_EQ(Fault(),
            "encoder 0 pipeline 0 micro-batch 0 forward stage 1 starts of ops: there are 3, not 4");
}

TEST_F(VerifyFinds, AMissingStage) {
  micro_batch(1).backward.pop_back();
  EXPECT_EQ(Fault(), "encoder 0 pipeline 1 micro-batch 1 backward stages: there are 1, not 2");
}

TEST_F(VerifyFinds, AMissingMicroBatch) {
  result_.encoders[0].pipelines[1].micro_batches.clear();
  EXPECT_EQ(Fault(), "encoder 0 pipeline 1 micro-batches: there are 0, not 1");
  result_.encoders[0].split[1] = 0;
  EXPECT_EQ(Fault(), "encoder 0 micro-batch 1: is placed 0 times, not 1");
}

TEST_F(VerifyFinds, AMissingPipelineSplitOrEncoder) {
  result_.encoders[0].split.pop_back();
  EXPECT_EQ(Fault(), "encoder 0 parts of the split: there are 1, not 2");
  result_.encoders[0].pipelines.pop_back();
  EXPECT_EQ(Fault(), "encoder 0 pipelines: there are 1, not 2");
  result_.encoders.clear();
  EXPECT_EQ(Fault(), "encoders: there are 0, not 1");
}

TEST_F(VerifyFinds, AMicroBatchTwice) {
  micro_batch(1).micro_batch = 0;
  EXPECT_EQ(Fault(), "encoder 0 micro-batch 0: is placed 2 times, not 1");
  micro_batch(1).micro_batch = 2;
  EXPECT_EQ(Fault(), "encoder 0: there is no micro-batch 2");
}

TEST_F(VerifyFinds, AMicroBatchThatHoldsNoInput) {
  problem_.encoders[0].micro_batches = {0};
  EXPECT_EQ(Fault(), "encoder 0 micro-batch 1: is placed 1 times, not 0");
}

TEST_F(VerifyFinds, TwoKernelsAtOnce) {
  // Op 1 belongs to another chain than op 0, so that only the lane is in its way.
  micro_batch(0).forward[0].starts[1] = micro_batch(0).forward[0].starts[0] + 1_ps;
  EXPECT_THAT(Fault(), HasSubstr("overlaps on lane 0 with"));
  EXPECT_THAT(Fault(), HasSubstr("micro-batch 0 stage 0 forward op 1 (kernel, layer 0)"));
}

TEST_F(VerifyFinds, AnOverlapOfTwoPipelinesOnOneLane) {
  // The same encoder again, on the same lanes.
  problem_.encoders.push_back(problem_.encoders[0]);
  result_ = testing::NaiveResult(problem_);
  ASSERT_TRUE(Verify(problem_, result_).ok());
  result_.encoders[1].pipelines[1].micro_batches[0].forward =
      result_.encoders[0].pipelines[1].micro_batches[0].forward;
  EXPECT_THAT(Fault(), HasSubstr("overlaps on lane 1 with encoder 0 pipeline 1"));
}

TEST_F(VerifyFinds, AKernelOnTopOfTheLlm) {
  micro_batch(0).forward[0].starts[1] = 10_ps + result_.delta_f;
  EXPECT_THAT(Fault(), HasSubstr("op 1 (kernel, layer 0): runs from"));
  EXPECT_THAT(Fault(), HasSubstr("where the LLM has a kernel"));
  // It fits between the kernels, and not a picosecond earlier or later.
  micro_batch(0).forward[0].starts[1] = 39_ps + result_.delta_f;
  EXPECT_THAT(Fault(), HasSubstr("where the LLM has a kernel"));
  micro_batch(0).forward[0].starts[1] = 55_ps + result_.delta_f;
  EXPECT_THAT(Fault(), HasSubstr("where the LLM has a kernel"));
  micro_batch(0).forward[0].starts[1] = 54_ps + result_.delta_f;
  EXPECT_THAT(Fault(), Not(HasSubstr("where the LLM has")));
}

TEST_F(VerifyFinds, ACollectiveOnTopOfTheLlms) {
  micro_batch(0).forward[0].starts[2] = 38_ps + result_.delta_f;
  EXPECT_THAT(Fault(), HasSubstr("op 2 (collective, layer 0): runs from"));
  EXPECT_THAT(Fault(), HasSubstr("where the LLM has a tensor-parallel collective"));
  // Nothing of the LLM's is on the links up to 40 ps.
  micro_batch(0).forward[0].starts[2] = 8_ps + result_.delta_f;
  EXPECT_THAT(Fault(), Not(HasSubstr("where the LLM has")));
}

TEST_F(VerifyFinds, AnOpBeforeTheStep) {
  micro_batch(0).forward[0].starts[0] = -(1_ps);
  EXPECT_THAT(Fault(), HasSubstr("op 0 (kernel, layer 0): before the step begins"));
}

TEST_F(VerifyFinds, AnOpBeforeTheOneItNeeds) {
  auto& starts = micro_batch(0).forward[1].starts;
  starts[2] = starts[0] + 3_ps;
  EXPECT_THAT(Fault(), HasSubstr("stage 1 forward op 2 (collective, layer 1): starts before op 0"));
}

TEST_F(VerifyFinds, AChainOutOfOrder) {
  // Without dependencies only the chain orders kernels 0 and 3.
  StageWork& work = problem_.encoders[0].forward[0];
  for (WorkOp& op : work.ops) op.dependency_count = 0;
  auto& starts = micro_batch(0).forward[0].starts;
  const Picoseconds first = starts[0];
  starts[0] = first + 5_ps;
  starts[3] = first;
  micro_batch(0).forward[0].starts[1] = first + 9_ps;
  starts[2] = first;
  EXPECT_THAT(Fault(),
              HasSubstr("op 3 (kernel, layer 0): starts before an earlier op of its chain"));
}

TEST_F(VerifyFinds, AnInputThatIsNotThereYet) {
  // Part 1 of stage 1's input is what op 1 of stage 0 makes; a hop of 2 ps is between them.
  const PlacedStage& before = micro_batch(0).forward[0];
  PlacedStage& stage = micro_batch(0).forward[1];
  stage.starts[1] = before.starts[1] + 6_ps + 2_ps;
  stage.starts[0] = std::max(stage.starts[0], stage.starts[1] + 6_ps);
  ASSERT_THAT(Fault(), Not(HasSubstr("of its input")));
  stage.starts[1] -= 1_ps;
  EXPECT_THAT(
      Fault(),
      HasSubstr("stage 1 forward op 1 (kernel, layer 1): starts before part 1 of its input"));
}

TEST_F(VerifyFinds, ABackwardStageInFrontOfTheOneBehindIt) {
  micro_batch(1).backward[0].starts = micro_batch(1).backward[1].starts;
  EXPECT_THAT(Fault(), HasSubstr("micro-batch 1 stage 0 backward op 0"));
  EXPECT_THAT(Fault(), HasSubstr("of its input is there"));
}

TEST_F(VerifyFinds, AnOutputThatIsTooLate) {
  problem_.llm.forward_needed[0] =
      micro_batch(0).forward_end + 1_ps - result_.delta_f;  // just in time
  ASSERT_TRUE(Verify(problem_, result_).ok()) << Verify(problem_, result_);
  problem_.llm.forward_needed[0] -= 1_ps;
  EXPECT_THAT(Fault(), HasSubstr("micro-batch 0 stage 1 forward: its output reaches the LLM too"));
}

TEST_F(VerifyFinds, AWrongForwardEnd) {
  micro_batch(0).forward_end += 1_ps;
  EXPECT_THAT(Fault(), HasSubstr("stage 1 forward: forward_end is"));
}

TEST_F(VerifyFinds, AWrongBackwardStart) {
  micro_batch(0).backward_start += 1_ps;
  EXPECT_THAT(Fault(), HasSubstr("stage 1 backward: backward_start is"));
}

TEST_F(VerifyFinds, ABackwardWithoutItsOwnGradient) {
  // With the map turned round, the second pipeline would need what is made at 90 ps: fine. The
  // first one then has to wait for 110 + 1 ps, one more than it does when nothing is in its way.
  problem_.encoders[0].backward[1].ops[0].input_part = -1;
  problem_.encoders[0].backward[1].ops[1].input_part = -1;
  ASSERT_TRUE(Verify(problem_, result_).ok()) << Verify(problem_, result_);
  problem_.llm.backward_made[0] = micro_batch(0).backward_start - result_.delta_f - 1_ps;
  problem_.llm.backward_made[0] = std::min(problem_.llm.backward_made[0], 110_ps);
  problem_.encoders[0].from_llm[0] =
      micro_batch(0).backward_start - result_.delta_f - problem_.llm.backward_made[0];
  ASSERT_TRUE(Verify(problem_, result_).ok()) << Verify(problem_, result_);
  problem_.encoders[0].from_llm[0] += 1_ps;
  EXPECT_THAT(Fault(),
              HasSubstr("micro-batch 0 stage 1 backward: starts before the LLM's gradient"));
}

TEST_F(VerifyFinds, ABackwardBeforeItsForward) {
  // A recomputation needs no input, but the forward must have been.
  WorkOp& op = problem_.encoders[0].backward[0].ops[1];
  op.input_part = -1;
  micro_batch(0).backward[0].starts[1] = 0_ps;
  EXPECT_THAT(Fault(), HasSubstr("stage 0 backward op 1"));
  EXPECT_THAT(Fault(), HasSubstr("starts before the stage's forward ends"));
}

TEST_F(VerifyFinds, AForwardBeforeItsGather) {
  auto& gathers = result_.encoders[0].gathers;
  const Picoseconds start = micro_batch(0).forward[1].starts[0];
  gathers[1][0] = {start - 8_ps, start};
  ASSERT_THAT(Fault(), Not(HasSubstr("gather 0 of its layer")));
  gathers[1][0] = {start - 7_ps, start + 1_ps};
  EXPECT_THAT(Fault(), HasSubstr("stage 1 forward op 0 (kernel, layer 1): starts before gather 0"));
}

TEST_F(VerifyFinds, AGatherInTheWayOfTheLlm) {
  auto& gathers = result_.encoders[0].gathers;
  gathers[0][0] = {result_.delta_f - 7_ps, result_.delta_f + 1_ps};
  EXPECT_THAT(Fault(),
              HasSubstr("gather 0 on LLM stage 0: ends after the LLM's own gather starts"));
  gathers[0][0] = {-(1_ps), 7_ps};
  EXPECT_THAT(Fault(), HasSubstr("gather 0 on LLM stage 0: before the step begins"));
  gathers[0][0] = {0_ps, 7_ps};
  EXPECT_EQ(Fault(), "encoder 0 gathers of stage 0 bucket 0: lasts 7 ps, not 8 ps");
}

TEST_F(VerifyFinds, AMissingReduction) {
  result_.encoders[0].reductions[1].clear();
  EXPECT_EQ(Fault(), "encoder 0 reductions of stage 1: there are 0, not 1");
  result_.encoders[0].reductions.clear();
  EXPECT_EQ(Fault(), "encoder 0 reductions of stage 0: there are 0, not 1");
}

TEST_F(VerifyFinds, AReductionBeforeTheLastBackward) {
  auto& reductions = result_.encoders[0].reductions;
  Interval& first = reductions[0][0];
  const PlacedStage& backward = micro_batch(1).backward[0];
  const Picoseconds last = std::max(backward.starts[1] + 6_ps, backward.starts[3] + 5_ps);
  first = {last - 1_ps, last + 8_ps};
  EXPECT_THAT(Fault(), HasSubstr("backward op 3 (kernel, layer 0): ends after reduction 0"));
}

TEST_F(VerifyFinds, AReductionBeforeTheLlms) {
  for (LlmStage& stage : problem_.llm.stages) stage.gradients_reduced = 900_ps;
  problem_.llm.step = 907_ps;
  EXPECT_THAT(Fault(), HasSubstr("reduction 0 on LLM stage 0: starts before the LLM's own"));
}

TEST_F(VerifyFinds, TwoEncodersOnOneCard) {
  problem_.encoders.push_back(problem_.encoders[0]);
  result_ = testing::NaiveResult(problem_);
  ASSERT_TRUE(Verify(problem_, result_).ok());
  Result gathers = result_;
  gathers.encoders[1].gathers = gathers.encoders[0].gathers;
  EXPECT_THAT(std::string(Verify(problem_, gathers).message()),
              HasSubstr("encoder 1 gather 0 on LLM stage 0: overlaps with encoder 0 gather 0"));
  result_.encoders[1].reductions = result_.encoders[0].reductions;
  EXPECT_THAT(Fault(), HasSubstr("encoder 1 reduction 0 on LLM stage 0: overlaps with encoder 0"));
}

TEST_F(VerifyFinds, BucketsOutOfOrder) {
  auto& buckets = problem_.encoders[0].sync.reductions[0];
  buckets.push_back({0, 0, 9_ps, 0});
  result_ = testing::NaiveResult(problem_);
  auto& placed = result_.encoders[0].reductions[0];
  std::swap(placed[0], placed[1]);
  EXPECT_THAT(Fault(), HasSubstr("stage 0 data-parallel bucket 1: starts before the one in front"));
}

TEST_F(VerifyFinds, AWrongLatency) {
  result_.latency += 1_ps;
  EXPECT_THAT(Fault(), HasSubstr("latency: "));
  result_.latency -= 1_ps;
  result_.delta_b += 1_ps;
  EXPECT_THAT(Fault(), HasSubstr("latency: "));
  result_.delta_b = -(1_ps);
  EXPECT_THAT(Fault(), HasSubstr("delta_b, which is negative"));
}

TEST_F(VerifyFinds, AShiftOfTheLlmAlone) {
  result_.delta_f += 1_ps;
  EXPECT_FALSE(Fault().empty());
  result_.delta_f = 0_ps;
  EXPECT_FALSE(Fault().empty());
}

TEST_F(VerifyFinds, AnEfficiencyThatIsNone) {
  result_.fine.work = 1.01;
  EXPECT_EQ(Fault(), "fine work efficiency: 1.01 is not a share of at most 1");
  result_.fine.work = 1;
  result_.coarse.work = -0.1;
  EXPECT_THAT(Fault(), HasSubstr("coarse work efficiency"));
  result_.coarse.work = 0;
  result_.fine.time = std::nan("");
  EXPECT_THAT(Fault(), HasSubstr("fine time efficiency"));
}

TEST_F(VerifyFinds, PaperRules) {
  ASSERT_EQ(PaperFault(), "");
  micro_batch(0).forward[0].interior = true;
  EXPECT_THAT(PaperFault(), HasSubstr("is marked as interior, and is not"));
  micro_batch(0).forward[0].interior = false;
  auto& starts = micro_batch(0).forward[0].starts;
  std::swap(starts[0], starts[1]);
  EXPECT_THAT(PaperFault(),
              HasSubstr("op 1 (kernel, layer 0): starts before an earlier op of its"));
  std::swap(starts[0], starts[1]);
  starts[3] = 45_ps + result_.delta_f;
  EXPECT_THAT(PaperFault(), HasSubstr("is marked as coarse, and is not"));
  result_ = testing::NaiveResult(problem_);
  result_.coarse_latency -= 1_ps;
  EXPECT_THAT(PaperFault(), HasSubstr("latency, above the coarse one"));
}

}  // namespace
}  // namespace optimus::bubble
