#pragma once
// The plan of a step in words: the header of a report.

#include <vector>

#include "schedule/step/step.h"
#include "tools/report.h"

namespace optimus::tools {

// "description", "model", "batch", "GPUs", "pipeline", "layout", ...: those that are known, in
// order. Of a schedule file (no experiment) only what the schedule itself says.
std::vector<Fact> DescribeStep(const step::Step& step);

}  // namespace optimus::tools
