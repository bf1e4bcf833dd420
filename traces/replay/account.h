#pragma once
// Where the time of every rank went in a run: busy with compute, exposed to communication, waiting
// or idle. Adds up to the step exactly.

#include <vector>

#include "traces/replay/classes.h"
#include "traces/replay/graph.h"
#include "traces/replay/replay.h"

namespace optimus::traces {

// Every instant of the step counts once, for the first of these that is going on: compute; a
// communication that moves data (of several the class that comes first); waiting inside one, or for
// a message; a copy; nothing.
struct TimeAccount {
  std::int32_t rank = 0;
  std::int32_t stands_for = 1;
  Picoseconds compute;
  Picoseconds copy;                  // exposed
  std::vector<Picoseconds> exposed;  // by class (OpClasses); of communication classes only
  Picoseconds waiting;
  Picoseconds idle;
  // By class: sum of the durations of its operations, of communication without waiting; overlapping
  // ones count each.
  std::vector<Picoseconds> total;
};

std::vector<TimeAccount> AccountOf(const ReplayGraph& graph, const OpClasses& classes,
                                   const Run& run);

// The mean over all ranks, each counted as often as GPUs behave like it; rounded down to a
// picosecond. `rank` and `stands_for` are 0 and the number of GPUs.
TimeAccount MeanOf(const std::vector<TimeAccount>& ranks);

}  // namespace optimus::traces
