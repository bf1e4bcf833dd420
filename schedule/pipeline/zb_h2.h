#pragma once
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// ZB-H2 (Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 2.2 and Figure 3
// bottom): more forwards fill the bubble before the first data gradient, and more weight gradients
// are kept for the end, so that a stage that starts later also ends later. 3 stages, 6
// micro-batches:
//
//   stage 0  F0 F1 F2 F3 F4 B0 W0 F5 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5
//   stage 1     F0 F1 F2 B0 F3 B1 F4 B2 W0 F5 B3 W1 B4 W2 B5 W3 W4 W5
//   stage 2        F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 W0 F5 B5 W1 W2 W3 W4 W5
//
// Memory: 2 * stages - 1 micro-batches on every stage, held until their weight gradients. Bubble,
// where all three passes last the same: none between a stage's own start and end. A step that waits
// for all stages before the optimizer still sees the slant of stages - 1 passes; the paper's
// optimizer starts stage by stage (section 4).
// INVALID_ARGUMENT for counts below 1 and fewer than 2 * stages - 1 micro-batches, the warm-up of
// stage 0.
absl::StatusOr<Order> ZbH2(int stages, int micro_batches);

}  // namespace optimus::pipeline
