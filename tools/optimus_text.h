#pragma once
// What is only printed for a step of strategy OPTIMUS.

#include <string>

#include "tools/report.h"

namespace optimus::tools {

// The plan that was simulated: where the encoders are, what of them was not hidden, the prediction
// beside the step by SimGrid, bounds and efficiencies. Nothing for other strategies.
void AppendOptimus(const Report& report, std::string& out);

// The whole output of `optimus plan`: conditions, the section above, all plans, best first, those
// that were dropped, assumptions. The last line, "wall ...", is the only one that differs from run
// to run. The report is of strategy OPTIMUS.
std::string PlanText(const Report& report);

}  // namespace optimus::tools
