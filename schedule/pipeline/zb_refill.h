#pragma once
// New places for the weight gradients of an order whose forwards and data gradients stay as they
// are on every stage.

#include "schedule/pipeline/order.h"
#include "schedule/pipeline/zb_path.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

// A weight gradient runs when its stage would wait else, if it delays the next forward or data
// gradient by at most `delay` of its own time, and when the next forward does not fit in memory;
// the rest end the stage. Oldest data gradient first. `order` passes ValidateOrder, has no whole
// backwards, does not deadlock and fits the problem's memory; so does the result.
Order RefillWeights(const ZbProblem& problem, const MicroBatchPath& path, const Order& order,
                    double delay);

}  // namespace optimus::pipeline
