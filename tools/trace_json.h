#pragma once
// What the JSON of replay and explain have in common.

#include <nlohmann/json.hpp>

#include "tools/traced_step.h"

namespace optimus::tools {

// version, files, format, ranks, world, folded, step_number, operations, clocks, unpaired, remarks.
void AddTraceFacts(const TracedStep& traced, nlohmann::ordered_json& json);

}  // namespace optimus::tools
