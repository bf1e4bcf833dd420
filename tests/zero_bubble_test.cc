// 1F1B bubble rates that others measured and printed, from their profiled times, by SimGrid.
// Source of every row: Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, Tables 5
// and 9. Bubble rate = (largest stage span - m (F + B + W)) / span; every forward and backward edge
// between stages adds the communication time.

#include <cmath>
#include <ostream>

#include "gtest/gtest.h"
#include "tests/profiled_experiment.h"
#include "tests/run_experiment.h"

namespace optimus {
namespace {

struct Row {
  int stages, micro_batches;
  double f_ms, b_ms, w_ms, comm_ms, bubble_1f1b;
};

constexpr Row kRows[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431},  {8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985},
    {8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240},  {16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552},
    {16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082}, {16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251},
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << "p" << row.stages << "m" << row.micro_batches;
}

class ZeroBubbleTable : public ::testing::TestWithParam<Row> {};

TEST_P(ZeroBubbleTable, OneForwardOneBackwardToFourDigits) {
  const Row& row = GetParam();
  const auto built = testing::Build(testing::ProfiledExperiment({.stages = row.stages,
                                                                 .micro_batches = row.micro_batches,
                                                                 .forward_ms = row.f_ms,
                                                                 .backward_ms = row.b_ms + row.w_ms,
                                                                 .communication_ms = row.comm_ms}));
  ASSERT_TRUE(built.ok()) << built.status();
  const auto timeline = testing::Simulate(*built, sim::Fidelity::kAuto);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  // Stage 0 starts first and ends last, so the largest stage span is the step.
  const double span_ms = ToSeconds(timeline->step) * 1e3;
  const double work_ms = row.micro_batches * (row.f_ms + row.b_ms + row.w_ms);
  const double bubble = (span_ms - work_ms) / span_ms;
  EXPECT_DOUBLE_EQ(std::round(bubble * 1e4) / 1e4, row.bubble_1f1b);
}

INSTANTIATE_TEST_SUITE_P(Rows, ZeroBubbleTable, ::testing::ValuesIn(kRows));

}  // namespace
}  // namespace optimus
