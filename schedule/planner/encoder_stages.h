#pragma once
// What every stage of an encoder pipeline holds.

#include "absl/status/statusor.h"
#include "schedule/planner/encoder_plan.h"
#include "schedule/step/stack.h"

namespace optimus::planner {

// The module as the ranks of `plan` see it: its shapes cut over TP_enc ranks instead of the LLM's.
step::Module UnderPlan(const step::Module& encoder, const EncoderPlan& plan);

// The items of encoder stage p are stack.items [r[p], r[p + 1]). Equal counts of layers; where they
// do not divide, the first stages hold one more. The projector is on the last stage. `module` > 0.
// INVALID_ARGUMENT where a stage would have no layer, NOT_FOUND where the stack has no such module.
absl::StatusOr<step::ItemRanges> EncoderStages(const step::Stack& stack, int module,
                                               const EncoderPlan& plan);

}  // namespace optimus::planner
