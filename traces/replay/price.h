#pragma once
// Recorded work in the terms of a cost model.

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "traces/replay/graph.h"

namespace optimus::traces {

// Contention-free time of a communication by `costs`; or why there is none, as a clause that
// follows the operation ("of unknown size").
absl::StatusOr<Picoseconds> PriceOf(const ReplayGraph& graph, TaskId task, const CostModel& costs);

}  // namespace optimus::traces
