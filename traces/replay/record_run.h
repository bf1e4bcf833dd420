#pragma once
// A run as a recording: the times of a what-if, to be drawn and exported like any trace.

#include "traces/recording/recording.h"
#include "traces/replay/graph.h"
#include "traces/replay/replay.h"

namespace optimus::traces {

// The graph's recording with the times of `run`, all ranks on one clock that starts at 0.
Recording RecordRun(const ReplayGraph& graph, const Run& run);

}  // namespace optimus::traces
