#pragma once
// Which Schedules can be run with real data.

#include "absl/status/status.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor::numerics {

// UNIMPLEMENTED, in one line with what to use instead, for a Schedule that reduces gradients in
// several buckets a model chunk: their collectives do not say which parameters are in which.
absl::Status CheckSupported(const ir::Schedule& schedule);

}  // namespace optimus::executor::numerics
