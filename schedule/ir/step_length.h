#pragma once
// The guard in front of every runner: times are whole picoseconds of 64 bits, and a Schedule whose
// operations last too long to be added up is refused before anything runs.

#include "absl/status/status.h"
#include "base/cost_model.h"
#include "schedule/ir/schedule.h"

namespace optimus::ir {

// 11.6 days: a ninth of what 64 bits hold.
inline constexpr Picoseconds kLongestStep{1'000'000'000'000'000'000};
// More than any link moves in a step; beyond 2^53 a double, and so SimGrid, loses single bytes.
inline constexpr Bytes kMostWireBytes{1'000'000'000'000'000};

// INVALID_ARGUMENT, naming the longest operation, where the uncontended durations of all operations
// of all programs, kernels times `largest_slow_down`, add up to more than kLongestStep, or where
// one of them moves more than kMostWireBytes. The Schedule must be valid.
//
// What passes cannot overflow where nothing contends: at every instant of a step some operation
// runs, so the sum bounds the step. Sharing a link at most serializes the transfers on it, as the
// link is always used in full. It is not enough where replicas go different ways (slow GPUs) or
// share a slower link (oversubscribed uplinks): there every single duration is still bounded, and
// the runner has to stop at kLongestStep by itself.
absl::Status CheckLength(const Schedule& schedule, const CostModel& costs,
                         double largest_slow_down);

}  // namespace optimus::ir
