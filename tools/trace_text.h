#pragma once
// What the texts of replay and explain have in common.

#include <cstdint>
#include <string>

#include "tools/traced_step.h"
#include "traces/replay/graph.h"

namespace optimus::tools {

// "trace", "clocks", "profile": files, format, ranks, step, corrections of clocks.
void AppendTraceFacts(const TracedStep& traced, std::string& out);
// "kernel 'x' of rank 3 at 1.2 ms" and the like: what was not paired, and remarks of the reader.
void AppendUnpaired(const traces::ReplayGraph& graph, std::string& out);

}  // namespace optimus::tools
