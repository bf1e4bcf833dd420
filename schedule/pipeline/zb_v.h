#pragma once
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/order_memory.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

// ZB-V (Qi et al., "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362, V-ZB; first
// in arXiv 2401.10241, version 1): two chunks on each stage, placed in a V (Placement::kV), so that
// the stage that starts a micro-batch's forward also ends it. 2 stages, 4 micro-batches; capitals
// are chunk 0, small letters chunk 1:
//
//   stage 0  F0 F1 F2 f0 b0 w0 f1 b1 w1 F3 B0 W0 f2 b2 w2 B1 W1 f3 b3 w3 B2 W2 B3 W3
//   stage 1     F0 f0 F1 f1 b0 w0 F2 B0 W0 f2 b1 w1 F3 B1 W1 f3 b2 w2 B2 b3 B3 W2 w3 W3
//
// Stage s of p runs 2 (p - s) - 1 forwards of chunk 0; then in turn forwards of chunks 1 and 0, s
// of each; then p - s micro-batches through chunk 1, forward and backward; then F B W f b w as long
// as forwards are left. The cool-down is s data gradients of chunk 0 and of chunk 1 in turn, p - s
// gradients of chunk 0 with their weights, and the weight gradients that are left.
//
// Memory: 2 p micro-batches of a chunk on every stage, held until their weight gradients: what the
// first stage of 1F1B holds. Bubble, where all three passes last the same: none between a stage's
// own start and end. INVALID_ARGUMENT for counts below 1 and fewer than 2 p - 1 micro-batches, the
// warm-up of stage 0.
absl::StatusOr<Order> ZbV(int stages, int micro_batches);

struct ZbVOptions {
  int stages = 1;
  int micro_batches = 1;
  SlotTimes times;  // by stage and chunk, two chunks
  // Micro-batches of a chunk that a stage may hold at once, by stage, each at least 2; 2 * stages
  // is the memory of 1F1B's first stage.
  std::vector<double> memory_limit;
  ActivationShares shares;
  ZbObjective objective = ZbObjective::kStageSpan;
};

// An order in the same placement made for times and a memory limit, by the search of ZbAuto
// (zb_auto.h): never longer than ZbV where that fits. Takes any number of micro-batches.
// INVALID_ARGUMENT for what CheckZbProblem refuses.
absl::StatusOr<Order> ZbVAuto(const ZbVOptions& options);

}  // namespace optimus::pipeline
