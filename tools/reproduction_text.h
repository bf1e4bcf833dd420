#pragma once
// A reproduction for people.

#include <string>

#include "tools/reproduction.h"

namespace optimus::tools {

// Every table: simulated value, published value, difference, error and what was fitted on it; then
// what was inferred. The last line, "wall ...", and rows of planning_s differ from run to run.
std::string ReproductionText(const Reproduction& reproduction);

}  // namespace optimus::tools
