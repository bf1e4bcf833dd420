#pragma once
// What a weight gradient needs outlives the data gradients of its layer where the two run apart
// (zero bubble: Qi et al., arXiv 2401.10241, section 2): the inputs of the linear layers and the
// gradients of their outputs. Under sequence parallelism the inputs are kept as they were gathered:
// the Schedule does not gather them again.

#include <deque>

#include "absl/status/status.h"
#include "executor/numerics/task.h"

namespace optimus::executor::numerics {

// Operations are compiled as if their layer's backward were whole: its last data gradients let
// everything go. What a later weight gradient of the rank needs is let go by the last of those
// instead, and is in Task::keeps of the operation that would have dropped it. UNIMPLEMENTED where
// the two are not kernels in the order of one stream: nothing would say who is last.
absl::Status KeepForWeightGradients(const Context& context, std::deque<Task>& tasks);

}  // namespace optimus::executor::numerics
