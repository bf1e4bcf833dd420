#pragma once
// What the time of a rank goes to, by class of operation: "compute", "dp reduce_scatter",
// "receive", "copy", "host".

#include <cstdint>
#include <string>
#include <vector>

#include "traces/replay/graph.h"

namespace optimus::traces {

struct OpClasses {
  std::vector<std::string> names;     // compute, then communication by name, copy, host
  std::vector<std::int32_t> of_task;  // index into names
  std::vector<OpKind> kinds;          // by class
};

// Role and kind where the role of the group is known ("tp all_gather"), the kind alone elsewhere.
// Communication of unknown type is "unknown communication".
OpClasses ClassesOf(const ReplayGraph& graph);

// The role by which communication is asked for: that of its group; "pp" of messages without one.
std::string RoleOfTask(const ReplayGraph& graph, TaskId task);

}  // namespace optimus::traces
