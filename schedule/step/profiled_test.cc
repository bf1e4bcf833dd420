// Pipelines of measured or invented times: closed forms, and published bubble rates.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Build;
using testing::Costs;
using ::testing::HasSubstr;
using testing::Parse;
using testing::StepTime;

// F = 1 ms and B = 2 ms per model chunk.
Experiment Shape(int stages, int chunks, int micro_batches, int group = 0,
                 const std::string& plan = "") {
  const std::string schedule = chunks > 1
                                   ? absl::StrCat("schedule: INTERLEAVED model_chunks: ", chunks,
                                                  " micro_batch_group: ", group)
                                   : "schedule: ONE_F_ONE_B";
  return Parse(absl::StrCat("profiled { forward_ms: ", chunks, " backward_ms: ", 2 * chunks, " } ",
                            "hardware { profile: 'h100-80gb' gpus: ", stages, " } ",
                            "batch { global_batch: ", micro_batches, " micro_batch: 1 } ",
                            "plan { data_parallel: 1 pipeline_parallel: ", stages,
                            " tensor_parallel: 1 no_optimizer: true ", schedule, " ", plan, " }"));
}

Picoseconds Milliseconds(int ms) { return Picoseconds(std::int64_t{ms} * 1'000'000'000); }

Picoseconds Span(const Experiment& experiment) {
  const auto costs = Costs();
  return StepTime(Build(experiment, costs), costs);
}

// Exact: times are whole picoseconds, messages are free.
TEST(ProfiledShapes, OneForwardOneBackward) {
  EXPECT_EQ(Span(Shape(4, 1, 1)), Milliseconds(12));
  EXPECT_EQ(Span(Shape(4, 1, 2)), Milliseconds(15));
  EXPECT_EQ(Span(Shape(1, 1, 5)), Milliseconds(15));
  for (const int p : {2, 3, 8}) {
    for (const int m : {1, 2, 7, 16})
      EXPECT_EQ(Span(Shape(p, 1, m)), Milliseconds(3 * (m + p - 1)));
  }
}

TEST(ProfiledShapes, Interleaved) {
  EXPECT_EQ(Span(Shape(4, 2, 8)), Milliseconds(57));
  EXPECT_EQ(Span(Shape(2, 2, 4)), Milliseconds(27));
  EXPECT_EQ(Span(Shape(4, 2, 6, 6)), Milliseconds(45));
  EXPECT_EQ(Span(Shape(4, 2, 10, 5)), Milliseconds(69));
  EXPECT_EQ(Span(Shape(4, 2, 10, 6)), Milliseconds(69));
}

TEST(ProfiledShapes, BothWarmUpsOfFigure12TakeAsLong) {
  EXPECT_EQ(Span(Shape(4, 2, 8, 0, "warm_up: DEFERRED")), Milliseconds(57));
  EXPECT_EQ(Span(Shape(4, 2, 8, 0, "warm_up: BEST")), Milliseconds(57));
}

TEST(ProfiledShapes, RefusedAsMegatronDoes) {
  const auto costs = Costs();
  for (const Experiment& experiment : {Shape(4, 2, 10, 4), Shape(4, 2, 8, 3)}) {
    const auto step = BuildStep(experiment, costs);
    ASSERT_FALSE(step.ok());
    EXPECT_THAT(std::string(step.status().message()),
                ::testing::StartsWith("plan.micro_batch_group: "));
    EXPECT_THAT(std::string(step.status().message()), HasSubstr("allowed"));
  }
}

TEST(ProfiledShapes, GPipeIsAsLongAsOneForwardOneBackward) {
  Experiment experiment = Shape(4, 1, 8);
  const Picoseconds one_f_one_b = Span(experiment);
  experiment.mutable_plan()->set_schedule(Plan::GPIPE);
  EXPECT_EQ(Span(experiment), one_f_one_b);
}

TEST(Profiled, CommunicationIsAddedToEveryEdge) {
  // One micro-batch passes 3 edges forward and 3 backward.
  Experiment experiment = Shape(4, 1, 1);
  experiment.mutable_profiled()->set_communication_ms(5);
  EXPECT_EQ(Span(experiment), Milliseconds(12 + 6 * 5));
}

TEST(Profiled, BestTakesTheFasterWarmUpAndSaysSo) {
  Experiment experiment = Shape(4, 2, 8, 0, "warm_up: BEST");
  experiment.mutable_profiled()->set_communication_ms(0.3);
  const Picoseconds best = Span(experiment);
  const auto costs = Costs();
  EXPECT_THAT(Build(experiment, costs).notes, ::testing::Contains(HasSubstr("warm-up: ")));
  experiment.mutable_plan()->set_warm_up(Plan::MEGATRON);
  const Picoseconds megatron = Span(experiment);
  experiment.mutable_plan()->set_warm_up(Plan::DEFERRED);
  const Picoseconds deferred = Span(experiment);
  EXPECT_NE(megatron, deferred);
  EXPECT_EQ(best, std::min(megatron, deferred));
}

// Calibration invariant 1: T = N V (f + b) + (p - 1)(f + b) where PP divides N.
TEST(ProfiledShapes, ClosedForm) {
  for (const int p : {2, 4, 8}) {
    for (const int v : {2, 3, 6}) {
      for (const int m : {p, 2 * p, 4 * p}) {
        EXPECT_EQ(Span(Shape(p, v, m)), Milliseconds(3 * (m * v + p - 1))) << p << v << m;
        EXPECT_EQ(Span(Shape(p, v, m, 0, "warm_up: DEFERRED")), Milliseconds(3 * (m * v + p - 1)));
      }
    }
  }
}

struct ZeroBubbleRow {
  int stages, micro_batches;
  double forward_ms, backward_ms, weight_ms, communication_ms;
  double bubble;  // of 1F1B
};

// Largest span of a stage, from the start of its first to the end of its last operation.
Picoseconds LargestStageSpan(const Step& step, const ir::Timeline& timeline) {
  std::vector<Picoseconds> first(step.schedule.world.pp, timeline.step);
  std::vector<Picoseconds> last(step.schedule.world.pp);
  for (const ir::Span& span : timeline.spans) {
    const int stage = span.rank;  // dp = tp = 1
    const ir::Operation& op = step.schedule.programs[stage].operations[span.operation];
    if (op.kind != ir::OperationKind::kKernel) continue;
    first[stage] = std::min(first[stage], span.start);
    last[stage] = std::max(last[stage], span.end);
  }
  Picoseconds largest;
  for (std::size_t s = 0; s < first.size(); ++s) largest = std::max(largest, last[s] - first[s]);
  return largest;
}

// Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, Tables 5 and 9, column 1F1B. The
// published bubble rates have 4 digits.
TEST(Profiled, ZeroBubblePapersOneForwardOneBackward) {
  const std::vector<ZeroBubbleRow> rows = {
      {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431},
      {8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985},
      {8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240},
      {16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552},
      {16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082},
      {16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251},
  };
  const auto costs = Costs();
  for (const ZeroBubbleRow& row : rows) {
    Experiment experiment = Shape(row.stages, 1, row.micro_batches);
    experiment.mutable_profiled()->set_forward_ms(row.forward_ms);
    experiment.mutable_profiled()->set_backward_ms(row.backward_ms);
    experiment.mutable_profiled()->set_weight_ms(row.weight_ms);
    experiment.mutable_profiled()->set_communication_ms(row.communication_ms);
    const Step step = Build(experiment, costs);
    const double span = ToSeconds(LargestStageSpan(step, testing::Run(step, costs))) * 1e3;
    const double busy = row.micro_batches * (row.forward_ms + row.backward_ms + row.weight_ms);
    EXPECT_NEAR((span - busy) / span, row.bubble, 5.1e-5);
  }
}

}  // namespace
}  // namespace optimus::step
