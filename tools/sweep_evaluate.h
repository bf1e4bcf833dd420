#pragma once
// One point of a sweep: planned and simulated as `optimus simulate` does it.

#include "tools/sweep/run/outcome.pb.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::tools {

// Once in a process, which is good for nothing else after it. `keep_report`: the JSON of optimus
// simulate, without what differs from run to run. Errors are part of the outcome: what the input
// asks for and cannot be is "impossible".
sweep::PointOutcome EvaluatePoint(const sweep::Point& point, bool keep_report);

}  // namespace optimus::tools
