#pragma once
// Local search on an order of forwards, data and weight gradients: moves slots of the critical path
// while that makes the order shorter.

#include <cstdint>

#include "schedule/pipeline/order.h"
#include "schedule/pipeline/zb_path.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

// Moves, each within one stage and the memory limit, none of which takes micro-batches out of turn,
// from the end of the critical path to its start: a critical slot goes before up to six slots that
// it follows without a break; a critical weight gradient goes behind up to as many; the next weight
// gradient that is ready fills the gap before a critical slot that waits. The first move that
// improves the order is kept (the objective, then its tie-break, then the sum of all stages'
// spans), until none does or `budget` slots were replayed. The same input gives the same order.
// `order` passes ValidateOrder, has no whole backwards, does not deadlock and fits the problem's
// memory.
Order Improve(const ZbProblem& problem, const MicroBatchPath& path, Order order,
              std::int64_t budget);

}  // namespace optimus::pipeline
