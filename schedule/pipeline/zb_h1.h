#pragma once
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 2.1 and Figure 3
// top): 1F1B whose weight gradients wait, on stage s for s further data gradients. Upstream stages
// get their gradients earlier, and what waited fills the cool-down. 4 stages, 6 micro-batches:
//
//   stage 0  F0 F1 F2 F3 .. .. .. B0 W0 F4 B1 W1 F5 B2 W2 B3 W3 B4 W4 B5 W5
//   stage 1     F0 F1 F2 .. .. B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 B4 W3 B5 W4 W5
//   stage 2        F0 F1 .. B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 B5 W3 W4 W5
//   stage 3           F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 W3 W4 W5
//
// Memory: at most min(stages, micro_batches) micro-batches on every stage, held until their weight
// gradients; the most that a stage of 1F1B holds. Bubble, where all three passes last t and there
// are at least as many micro-batches as stages: (stages - 1) t on every stage, a third of 1F1B's.
// INVALID_ARGUMENT for counts below 1.
absl::StatusOr<Order> ZbH1(int stages, int micro_batches);

}  // namespace optimus::pipeline
