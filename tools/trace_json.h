#pragma once
// What the JSON of replay and explain have in common.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/replay/graph.h"

namespace optimus::tools {

// format, files, ranks, world, folded, step_number, clocks, unpaired, remarks.
void AddTraceFacts(const std::vector<std::string>& files, const traces::ReplayGraph& graph,
                   std::optional<std::int64_t> step, nlohmann::ordered_json& json);

}  // namespace optimus::tools
