#pragma once
// How much shorter the step would be if one class of operation took no time: found by running the
// step again, since what is off the critical path comes onto it.

#include <string>
#include <vector>

#include "traces/replay/classes.h"
#include "traces/replay/graph.h"
#include "traces/replay/replay.h"

namespace optimus::traces {

struct Sensitivity {
  // A class, "host between calls", or "launch gaps and what the trace does not say".
  std::string name;
  std::int32_t cls = -1;  // -1: lags
  Picoseconds step;       // with it free
};

// Of every class that has operations, and of lags where there are some; the shortest step first.
std::vector<Sensitivity> Sensitivities(const ReplayGraph& graph, const OpClasses& classes,
                                       const Durations& durations);

}  // namespace optimus::traces
