#pragma once
// Which Schedules can be run with real data.

#include "absl/status/status.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor::numerics {

// UNIMPLEMENTED, in one line with what to use instead, for a Schedule
//   - that reduces gradients in several buckets a model chunk;
//   - that holds two copies of the model, one in each direction (DualPipe): it does not say how
//     their gradients become one.
absl::Status CheckSupported(const ir::Schedule& schedule);

}  // namespace optimus::executor::numerics
