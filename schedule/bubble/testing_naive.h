#pragma once
// A scheduler so simple that it is right: every forward before the LLM, every backward after it,
// one op at a time.

#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"

namespace optimus::bubble::testing {

// Valid by construction. Latency is what it comes to; efficiencies are zero.
Result NaiveResult(const Problem& problem);

}  // namespace optimus::bubble::testing
