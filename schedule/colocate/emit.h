#pragma once
// From placed encoder kernels to a Schedule: the LLM's programs with the encoders' operations
// merged in, stream by stream, in the order of their predicted times.
//
// The order is all that the times are used for: what must wait for what is an explicit dependency,
// so the Schedule stays correct when durations differ. Every operation may start as early as its
// stream and its dependencies allow, so that the step is at most as long as predicted.

#include "absl/status/statusor.h"
#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"
#include "schedule/colocate/encoder_work.h"
#include "schedule/colocate/planned.h"
#include "schedule/colocate/search.h"

namespace optimus::colocate {

// `llm` is the LlmStep of `best`.
absl::StatusOr<step::Step> EmitStep(const EncoderContext& context, LlmStep llm,
                                    const BestPlan& best);

}  // namespace optimus::colocate
