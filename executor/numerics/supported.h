#pragma once
// Which Schedules can be run with real data.

#include "absl/status/status.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor::numerics {

// UNIMPLEMENTED, in one line with what to use instead, for a Schedule
//   - that runs the weight gradients of a layer apart from its data gradients (zero bubble): inputs
//     and gradients would have to outlive the backward;
//   - that reduces gradients in several buckets a model chunk;
//   - whose virtual stages are not a loop over the pipeline stages (a V, two directions).
absl::Status CheckSupported(const ir::Schedule& schedule);

}  // namespace optimus::executor::numerics
