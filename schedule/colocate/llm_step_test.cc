#include "schedule/colocate/llm_step.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/colocate/testing.h"
#include "schedule/ir/bubbles.h"
#include "schedule/step/check.h"
#include "schedule/step/check_schedule.h"

namespace optimus::colocate {
namespace {

using bubble::Interval;
using ::testing::SizeIs;

Picoseconds Length(const std::vector<Interval>& intervals) {
  Picoseconds sum;
  for (const Interval& interval : intervals) sum += interval.length();
  return sum;
}

std::vector<LlmStep> Build(const step::Experiment& experiment) {
  const hw::ProfileCostModel costs = step::testing::Costs();
  auto steps = BuildLlmSteps(experiment, costs);
  EXPECT_TRUE(steps.ok()) << steps.status();
  return steps.ok() ? *std::move(steps) : std::vector<LlmStep>();
}

// Spans of the operations of one stage that `take` accepts.
template <class Take>
std::vector<Interval> BusyOf(const LlmStep& llm, std::size_t stage, Take take) {
  std::size_t first = 0;
  for (std::size_t s = 0; s < stage; ++s) first += llm.step.schedule.programs[s].operations.size();
  std::vector<Interval> busy;
  const auto& operations = llm.step.schedule.programs[stage].operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const ir::Span& span = llm.timeline.spans[first + i];
    if (take(operations[i])) busy.push_back({span.start, span.end});
  }
  return busy;
}

bool IsTensorParallel(const ir::Operation& op) { return op.stream == ir::Stream::kTensorParallel; }

// Idle slots and busy intervals tile [first_start, last_end]: the slow twin, by sorting.
void ExpectTiles(std::vector<Interval> busy, const std::vector<Interval>& idle, Picoseconds begin,
                 Picoseconds end) {
  busy.insert(busy.end(), idle.begin(), idle.end());
  std::sort(busy.begin(), busy.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  ASSERT_FALSE(busy.empty());
  EXPECT_EQ(busy.front().start, begin);
  EXPECT_EQ(busy.back().end, end);
  for (std::size_t i = 0; i + 1 < busy.size(); ++i) ASSERT_EQ(busy[i].end, busy[i + 1].start) << i;
}

TEST(LlmTimeline, IdleSlotsAndOperationsTileEveryStage) {
  const auto steps = Build(testing::Experiment(testing::Encoder("vit-300m")));
  ASSERT_THAT(steps, SizeIs(1));
  const bubble::LlmTimeline& llm = steps[0].llm;
  ASSERT_THAT(llm.stages, SizeIs(4));
  for (std::size_t s = 0; s < llm.stages.size(); ++s) {
    const bubble::LlmStage& stage = llm.stages[s];
    const auto compute = BusyOf(steps[0], s, ir::IsForwardOrBackwardCompute);
    EXPECT_EQ(Length(compute), stage.compute);
    ExpectTiles(compute, stage.compute_idle, stage.first_start, stage.last_end);
    ExpectTiles(BusyOf(steps[0], s, IsTensorParallel), stage.link_idle, stage.first_start,
                stage.last_end);
    EXPECT_GE(stage.gradients_reduced, stage.last_end);
  }
}

TEST(LlmTimeline, StepIsLastReductionAndWhatFollows) {
  const auto steps = Build(testing::Experiment(testing::Encoder("vit-300m")));
  ASSERT_THAT(steps, SizeIs(1));
  const bubble::LlmTimeline& llm = steps[0].llm;
  Picoseconds reduced;
  for (const bubble::LlmStage& stage : llm.stages) {
    reduced = std::max(reduced, stage.gradients_reduced);
  }
  EXPECT_EQ(llm.step, reduced + llm.after_reduction);
  EXPECT_EQ(llm.step, steps[0].timeline.step);
  // At least the optimizer step of the profile.
  EXPECT_GE(llm.after_reduction, step::testing::Costs().optimizer_overhead());
}

// With 1F1B stage 0 runs as many forwards as there are stages before its first backward.
TEST(LlmTimeline, DependencyPointsFollowThePipeline) {
  const auto steps = Build(testing::Experiment(testing::Encoder("vit-300m")));
  ASSERT_THAT(steps, SizeIs(1));
  const bubble::LlmTimeline& llm = steps[0].llm;
  ASSERT_THAT(llm.forward_needed, SizeIs(8));
  EXPECT_EQ(llm.forward_needed[0], llm.stages[0].first_start);
  EXPECT_EQ(llm.backward_made[7], llm.stages[0].last_end);
  for (int i = 0; i + 4 < 8; ++i) {
    EXPECT_EQ(llm.forward_needed[i + 4], llm.backward_made[i]) << i;
    EXPECT_LT(llm.forward_needed[i], llm.forward_needed[i + 1]);
  }
}

TEST(LlmStep, BestTriesBothWarmUpsAndOthersOne) {
  const std::string interleaved = "schedule: INTERLEAVED model_chunks: 2 ";
  const std::string encoder = testing::Encoder("vit-300m");
  const auto both = Build(testing::Experiment(encoder, interleaved + "warm_up: BEST"));
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_EQ(both[0].warm_up, step::Plan::MEGATRON);
  EXPECT_EQ(both[1].warm_up, step::Plan::DEFERRED);
  // Later forwards are needed later (Figure 12 of the paper).
  EXPECT_GT(both[1].llm.forward_needed.back(), both[0].llm.forward_needed.back());
  const auto one = Build(testing::Experiment(encoder, interleaved + "warm_up: DEFERRED"));
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].llm.step, both[1].llm.step);
}

TEST(LlmStep, HasNoEncoder) {
  const auto steps = Build(testing::Experiment(testing::Encoder("vit-300m")));
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_THAT(steps[0].step.schedule.modules, SizeIs(1));
  EXPECT_EQ(steps[0].step.experiment.encoders_size(), 0);
}

// Where weight gradients run apart, an encoder's backward waits for the data gradients of stage 0
// alone.
TEST(LlmTimeline, GradientsAreMadeBeforeTheWeightGradients) {
  step::Experiment experiment = testing::Experiment(testing::Encoder("vit-300m"));
  step::UseSchedule(step::Plan::ZB_2P, experiment);
  step::FillDefaults(experiment);
  const auto steps = Build(experiment);
  ASSERT_THAT(steps, SizeIs(1));
  const LlmStep& llm = steps[0];
  for (std::int32_t m = 0; m < llm.step.schedule.micro_batches; ++m) {
    const auto end_of = [&](bool weights) {
      Picoseconds end;
      const auto busy = BusyOf(llm, 0, [&](const ir::Operation& op) {
        return ir::IsCompute(op) && op.tag.micro_batch == m && op.tag.phase != Phase::kForward &&
               (op.tag.phase == Phase::kWeightGradient) == weights;
      });
      for (const Interval& interval : busy) end = std::max(end, interval.end);
      return end;
    };
    EXPECT_EQ(llm.llm.backward_made[m], end_of(false)) << m;
    EXPECT_GT(end_of(true), end_of(false)) << m;
  }
}

}  // namespace
}  // namespace optimus::colocate
