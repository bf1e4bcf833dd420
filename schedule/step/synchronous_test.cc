// What software of 2021 and 2022 does not overlap: messages and the collectives of the backward
// pass.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schedule/step/testing.h"

namespace optimus::step {
namespace {

using testing::Build;
using testing::Costs;
using testing::Parse;
using testing::StepTime;

// F = 10 ms, B = 20 ms, messages of `comm_ms`.
Picoseconds Pipeline(int stages, int micro_batches, double comm_ms, bool synchronous) {
  Experiment experiment = Parse(absl::StrCat(
      "profiled { forward_ms: 10 backward_ms: 20 communication_ms: ", comm_ms, " } ",
      "hardware { profile: 'h100-80gb' gpus: ", stages, " } ",
      "batch { global_batch: ", micro_batches, " micro_batch: 1 } ",
      "plan { data_parallel: 1 tensor_parallel: 1 no_optimizer: true schedule: ONE_F_ONE_B ",
      "pipeline_parallel: ", stages, " }"));
  experiment.mutable_plan()->set_synchronous_messages(synchronous);
  const auto costs = Costs();
  return StepTime(Build(experiment, costs), costs);
}

Picoseconds Milliseconds(int ms) { return Picoseconds(std::int64_t{ms} * 1'000'000'000); }

TEST(SynchronousMessages, WithoutTimeOfMessagesNothingChanges) {
  for (const int stages : {1, 2, 4}) {
    EXPECT_EQ(Pipeline(stages, 6, 0, true), Milliseconds(30 * (6 + stages - 1)));
  }
}

// The slow twin: each stage's 1F1B order, where an operation also waits for the stage's last
// message. Times are raised until none of them changes.
double Twin(int p, int m, double f, double b, double comm, bool synchronous) {
  std::vector<std::vector<double>> forward(p, std::vector<double>(m, 0)), backward = forward;
  for (bool changed = true; changed;) {
    changed = false;
    for (int s = 0; s < p; ++s) {
      double free = 0;
      const auto run = [&](double& end, double input, double time, bool sends) {
        const double ends = std::max(free, input) + time;
        changed |= ends > end;
        end = std::max(end, ends);
        free = ends + (synchronous && sends ? comm : 0);
      };
      const int warm_up = std::min(p - s - 1, m);
      for (int i = 0; i < m + warm_up; ++i) {
        if (i < m) run(forward[s][i], s > 0 ? forward[s - 1][i] + comm : 0, f, s + 1 < p);
        if (i < warm_up) continue;
        run(backward[s][i - warm_up], s + 1 < p ? backward[s + 1][i - warm_up] + comm : 0, b,
            s > 0);
      }
    }
  }
  return backward[0][m - 1];
}

TEST(SynchronousMessages, AsByHand) {
  for (const int p : {2, 3, 5}) {
    for (const int m : {1, 4, 9}) {
      for (const bool synchronous : {false, true}) {
        EXPECT_NEAR(ToSeconds(Pipeline(p, m, 3, synchronous)) * 1e3,
                    Twin(p, m, 10, 20, 3, synchronous), 1e-6)
            << p << " " << m << " " << synchronous;
      }
    }
  }
  EXPECT_GT(Pipeline(5, 9, 3, true), Pipeline(5, 9, 3, false));
}

// The collectives come out from under the weight gradients: the step is longer by at most their
// time, and by nothing without tensor parallelism.
TEST(BackwardOverlap, CollectivesNoLongerHide) {
  const auto costs = Costs();
  for (const int tp : {1, 8}) {
    Experiment experiment = Parse(
        absl::StrCat("name: 'x' llm: 'gpt-11b' hardware { profile: 'h100-80gb' gpus: ", tp, " } ",
                     "batch { global_batch: 2 micro_batch: 2 sequence_length: 2048 } ",
                     "plan { data_parallel: 1 pipeline_parallel: 1 tensor_parallel: ", tp,
                     " schedule: ONE_F_ONE_B layout: EQUAL_LAYERS no_sequence_parallel: true }"));
    const Picoseconds overlapped = StepTime(Build(experiment, costs), costs);
    experiment.mutable_plan()->set_no_backward_overlap(true);
    const Picoseconds apart = StepTime(Build(experiment, costs), costs);
    if (tp == 1) {
      EXPECT_EQ(apart, overlapped);
    } else {
      const CollectiveWork work = {CollectiveKind::kAllReduce, "",
                                   Bytes(std::int64_t{2} * 2048 * 3072 * 2)};
      const Picoseconds one = UncontendedTime(costs, costs.CollectiveCost(work, {8, 8}));
      EXPECT_GT(apart, overlapped);
      EXPECT_LE(apart, overlapped + one * (2 * 80 + 1));  // two a layer, one of the head
    }
  }
}

}  // namespace
}  // namespace optimus::step
