#pragma once
// The paper's Algorithm 2 once more, for tests: written from the text of the calibration notes with
// nothing remembered and nothing left out, so that the fast one can be compared with it.

#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"
#include "schedule/bubble/scheduler.h"

namespace optimus::bubble::testing {

// As SchedulePaper, without efficiencies. `options.most_micro_batches` is not looked at.
Result SlowPaper(const Problem& problem, const SearchOptions& options);

}  // namespace optimus::bubble::testing
