#pragma once
// The search of the automatic schedules: list schedules of many policies (zb_list.h) and given
// orders, each also with its weight gradients in new places (zb_refill.h), the best of them
// improved (zb_improve.h).
//
// A heuristic. On 2200 random problems small enough for every order to be tried (2 stages, up to 4
// micro-batches; 3 stages, up to 3) it found a shortest one in all but one, where it was 1.6 %
// longer.

#include <vector>

#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

// The best order found, by `problem.objective`; of equals, the first. It fits the memory limit, and
// every kind of pass takes the micro-batches of a chunk in turn. Not longer than any of `known`,
// orders of the problem's shape; those that do not fit its memory are left out. Deterministic. Its
// work is that of some hundred list schedules of three times as many micro-batches as stages, some
// ten of the whole step, and six local searches of a million slots each at most. Of the hundreds of
// policies, most are given up early or known to give an order that was seen (ListScore), which
// changes no result. INVALID_ARGUMENT for what CheckZbProblem refuses.
absl::StatusOr<Order> SearchZbOrder(const ZbProblem& problem, const std::vector<Order>& known);

}  // namespace optimus::pipeline
