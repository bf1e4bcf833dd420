#pragma once
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1 and Figure 5; its schedule as published in
// github.com/deepseek-ai/DualPipe). Half of the micro-batches go down the stages (chunk 0), the
// other half up (chunk 1): Placement::kBidirectional. In the steady state a forward of one
// direction shares the stage with a backward of the other (Slot::with_next). Weight gradients are
// split off (kBackwardData, kBackwardWeight) at the ends, where they fill idle time.
//
// 4 stages, 8 micro-batches, F = B_in = B_w = 1, a shared pair 3; capitals go down, small letters
// up; I: data gradient, W: weight gradient, B: both, "&": the two share the stage:
//
//   stage 0: F0F1F2f4i4w4f5F3&b5   f6&B0 b6    f7&B1 b7  I2W2I3W3
//   stage 1:   F0f4F1f5F2b4  f6&B0 F3&b5 f7&B1 b6  B2    i7I3w7W3
//   stage 2:   f4F0f5F1f6B0  F2&b4 f7&B1 F3&b5 B2  b6    I3i7W3w7
//   stage 3: f4f5f6F0I0W0F1f7&B1   F2&b4 B2    F3&b5 B3  i6w6i7w7
//
// Bubble (step - a stage's work), with B = B_in + B_w, W = B_w and F&B a shared pair:
// (PP/2 - 1)(F&B + B - 3W) on the two middle stages, and on every stage if F&B = F + B. A stage at
// the ends shares fewer pairs; where sharing saves time (F&B < F + B) it is busy longer, and its
// bubble is smaller. This holds for F = B_in >= W; with F > B_in >= W the bubble is
// (PP/2 - 1)(F&B + F - 2W). For other times there is no such formula here: simulate.
//
// Memory: PP + 1 micro-batches in flight on every stage, each with the activations of 1/PP of the
// model; parameters and gradients twice, since every stage holds the layers of both directions.
//
// INVALID_ARGUMENT, with what is allowed, for an odd number of stages or of micro-batches, and for
// fewer than 2 * stages micro-batches.
absl::StatusOr<Order> DualPipe(int stages, int micro_batches);

}  // namespace optimus::pipeline
