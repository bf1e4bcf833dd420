#pragma once
// Names a circle of operations that wait for each other.

#include <vector>

#include "absl/status/status.h"
#include "traces/replay/graph.h"

namespace optimus::traces {

// INVALID_ARGUMENT. `done`: by task, what could run; something could not.
absl::Status CycleError(const ReplayGraph& graph, const std::vector<bool>& done);

}  // namespace optimus::traces
