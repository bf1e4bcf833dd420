// The published bubble rates of 1F1B from profiled times.
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, Tables 5 and 9: profiled
// F, B, W and communication times and the bubble rate of 1F1B. B and W run together. The rate is
// (largest stage span - m (F + B + W)) / that span, a stage's span being from its first start to
// its last end.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/order_span.h"

namespace optimus::pipeline {
namespace {

struct Row {
  int stages = 0, micro_batches = 0;
  double f_ms = 0, b_ms = 0, w_ms = 0, comm_ms = 0;
  double bubble_1f1b = 0;
};

constexpr Row kRows[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431},    // 1.5 B parameters
    {8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985},    //
    {8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240},    //
    {16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552},   // 14.6 B parameters
    {16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082},   //
    {16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251},  //
};

Picoseconds Ms(double ms) { return FromSeconds(ms * 1e-3); }

double BubbleRate(const Row& row) {
  const auto order = OneForwardOneBackward(row.stages, row.micro_batches);
  const auto span = EvaluateOrder(
      *order, UniformTimes(*order, Ms(row.f_ms), Ms(row.b_ms), Ms(row.w_ms), Ms(row.comm_ms)));
  Picoseconds largest;
  for (int s = 0; s < row.stages; ++s) {
    largest = std::max(largest, span->last_end[s] - span->first_start[s]);
  }
  const Picoseconds busy = (Ms(row.f_ms) + Ms(row.b_ms) + Ms(row.w_ms)) * row.micro_batches;
  return ToSeconds(largest - busy) / ToSeconds(largest);
}

TEST(ZeroBubbleTest, OneFOneBColumnToFourDigits) {
  for (const Row& row : kRows) {
    EXPECT_DOUBLE_EQ(std::round(BubbleRate(row) * 1e4) / 1e4, row.bubble_1f1b)
        << row.stages << " stages, " << row.micro_batches << " micro-batches";
  }
}

}  // namespace
}  // namespace optimus::pipeline
