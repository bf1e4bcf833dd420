#pragma once
// Clocks of different hosts differ, by microseconds or by years. Where ranks take part in one
// collective it ends for all at once, so the ends that they recorded tell how far their clocks are
// apart.

#include <vector>

#include "traces/replay/graph.h"
#include "traces/replay/match.h"

namespace optimus::traces {

// Corrections to be added to the times of graph.tasks, one for every rank but the reference (the
// lowest rank of each set of ranks that collectives connect); empty where there is one clock or
// nothing is timed. Broadcasts, reduces and the like, and eager messages, end at different times
// for different ranks: they are not asked. The median of all ends counts.
std::vector<ClockCorrection> FindCorrections(const ReplayGraph& graph,
                                             const std::vector<Match>& matches);

}  // namespace optimus::traces
