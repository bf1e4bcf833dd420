#pragma once
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/order_memory.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

struct ZbAutoOptions {
  int stages = 1;
  int micro_batches = 1;
  SlotTimes times;  // by stage, one chunk
  // Micro-batches that a stage may hold at once, by stage, each at least 1. The paper's ZB-1p has
  // `stages` of them on every stage (the memory of 1F1B's first stage), its ZB-2p twice as many.
  std::vector<double> memory_limit;
  ActivationShares shares;
  ZbObjective objective = ZbObjective::kStageSpan;
};

// The automatic schedule of Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241,
// section 3.1: an order made for the times of a pipeline and a memory limit. The best, by
// EvaluateOrder's times, of the search in zb_search.h, which starts from list schedules, ZB-H1 and
// ZB-H2: never longer than a handcrafted schedule that fits, by the objective. (With kStageSpan the
// whole step, from the first start to the last end of all stages, may be longer all the same: it
// only breaks ties.) 2 stages, 4 micro-batches, F = 2, B =
// 2, W = 1, no more than 2 micro-batches held, half of each until its weight gradient:
//
//   stage 0  F0 -- F1 -- .. .. B0 -- W0 F2 -- B1 -- W1 F3 -- B2 -- W2 .. B3 -- W3
//   stage 1        F0 -- B0 -- F1 -- B1 -- W0 F2 -- B2 -- W1 F3 -- B3 -- W2 W3
//
// The same input gives the same order. INVALID_ARGUMENT for what CheckZbProblem refuses.
absl::StatusOr<Order> ZbAuto(const ZbAutoOptions& options);

}  // namespace optimus::pipeline
