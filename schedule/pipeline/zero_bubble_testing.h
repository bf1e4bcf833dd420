#pragma once
// The published times and bubble rates that the tests of the zero-bubble family share.
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, Tables 5 and 9: profiled
// F, B, W and communication times, and the bubble rates of the schedules with them. The rate is
// (largest stage span - m (F + B + W)) / that span, a stage's span being from its first start to
// its last end: the paper's optimizer does not wait for the other stages.

#include <algorithm>
#include <cstddef>

#include "schedule/pipeline/order_span.h"

namespace optimus::pipeline {

struct PublishedRow {
  int stages = 0, micro_batches = 0;
  double f_ms = 0, b_ms = 0, w_ms = 0, comm_ms = 0;
  double bubble_1f1b = 0, bubble_interleaved = 0;  // 3 chunks
  double bubble_zb_h1 = 0, bubble_zb_h2 = 0, bubble_zb_2p = 0;
};

inline constexpr PublishedRow kPublished[] = {
    // 1.5 B parameters
    {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1055, 0.1585, 0.1083, 0.0433},
    {8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.0818, 0.1242, 0.0837, 0.0039},
    {8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0443, 0.0674, 0.0444, 0.0026},
    // 14.6 B parameters
    {16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1104, 0.1397, 0.0672, 0.0066},
    {16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.0852, 0.1088, 0.0516, 0.0054},
    {16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0445, 0.0576, 0.0266, 0.0028},
};

inline Picoseconds Ms(double ms) { return FromSeconds(ms * 1e-3); }

// A stage's chunks share its time equally.
inline SlotTimes TimesOf(const PublishedRow& row, const Order& order) {
  return UniformTimes(order, Ms(row.f_ms / order.chunks), Ms(row.b_ms / order.chunks),
                      Ms(row.w_ms / order.chunks), Ms(row.comm_ms));
}

inline Picoseconds LargestStageSpan(const OrderSpan& span) {
  Picoseconds largest;
  for (std::size_t s = 0; s < span.first_start.size(); ++s) {
    largest = std::max(largest, span.last_end[s] - span.first_start[s]);
  }
  return largest;
}

inline double BubbleRate(const PublishedRow& row, const Order& order) {
  const auto span = EvaluateOrder(order, TimesOf(row, order));
  if (!span.ok()) return 1;
  const Picoseconds largest = LargestStageSpan(*span);
  const Picoseconds busy = (Ms(row.f_ms) + Ms(row.b_ms) + Ms(row.w_ms)) * row.micro_batches;
  return ToSeconds(largest - busy) / ToSeconds(largest);
}

}  // namespace optimus::pipeline
