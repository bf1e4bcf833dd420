#pragma once
// What the texts of replay and explain have in common.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/replay/graph.h"

namespace optimus::tools {

// "trace", "clocks": files, format, ranks, step, corrections of clocks.
void AppendTraceFacts(const std::vector<std::string>& files, const traces::ReplayGraph& graph,
                      std::optional<std::int64_t> step, std::string& out);
// "kernel 'x' of rank 3 at 1.2 ms" and the like: what was not paired, and remarks of the reader.
void AppendUnpaired(const traces::ReplayGraph& graph, std::string& out);

}  // namespace optimus::tools
