#pragma once
// What holds of the paper's scheduler beyond Verify (schedule/bubble/scheduler.h).

#include "absl/status/status.h"
#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"

namespace optimus::bubble {

// Kernels in order: on one resource, all ops of a micro-batch, whatever their chain, run in the
// order of the StageWork. What is marked as interior lies between the LLM's first start and last
// end; what is not lies before the first or after the last. The latency is not above the coarse
// one. INVALID_ARGUMENT names the op.
absl::Status VerifyPaperRules(const Problem& problem, const Result& result);

}  // namespace optimus::bubble
