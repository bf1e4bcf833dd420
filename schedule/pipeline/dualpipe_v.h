#pragma once
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// DualPipeV: DualPipe cut in half ("Cut-in-half", Qi et al., Sea AI Lab 2025; also in
// github.com/deepseek-ai/DualPipe, and in PyTorch as ScheduleDualPipeV). DualPipe's stage s and
// its mirror image do the same work with the directions exchanged, so that one of them with all
// micro-batches does: the model goes down the stages (chunk 0) and back (chunk 1), Placement::kV.
// Each stage runs the slots of DualPipe on twice the stages.
//
// 2 stages, 4 micro-batches, F = B_in = B_w = 1, a shared pair 3; capitals: chunk 0, small
// letters: chunk 1; the rest as in dualpipe.h:
//
//   stage 0: F0F1F2f0i0w0f1F3&b1   f2&B0 b2    f3&B1 b3  I2W2I3W3
//   stage 1:   F0f0F1f1F2b0  f2&B0 F3&b1 f3&B1 b2  B2    i3I3w3W3
//
// Bubble: (p - 1)(F&B + B - 3W), p stages, the times those of one chunk; on the last stage, and on
// every stage if F&B = F + B, as for DualPipe.
//
// Memory: 2p + 1 micro-batches of one chunk in flight on every stage, each with the activations of
// 1/(2p) of the model; parameters once.
//
// INVALID_ARGUMENT, with what is allowed, for fewer than 2 * stages micro-batches.
absl::StatusOr<Order> DualPipeV(int stages, int micro_batches);

}  // namespace optimus::pipeline
