#pragma once
// What each strategy asks of a plan, beyond what every plan must keep.

#include "absl/status/status.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::step {

// What the strategy leaves no choice in, or what is usual with it:
//   OPTIMUS: layout EQUAL_LAYERS (of the LLM alone).
//   FSDP: one stage that holds everything, one forward then one backward; prefetch 1.
//   ALPA: 1F1B, layout INTER_OPERATOR, neither sequence parallelism nor a distributed optimizer.
void FillStrategyDefaults(Plan& plan);

// INVALID_ARGUMENT "plan.FIELD: ..." where a field contradicts the strategy, or belongs to another.
// The plan's sizes (dp, pp, tp) must be positive.
absl::Status CheckStrategy(const Experiment& experiment);

// encoders[].micro_batches_without_input: in range, ascending. UNIMPLEMENTED under any other
// strategy than OPTIMUS. The batch must have been checked.
absl::Status CheckMicroBatchesWithoutInput(const Experiment& experiment, int encoder);

// The experiment of an OPTIMUS plan's pipeline: the same without encoders, strategy PIPELINE.
Experiment LlmAlone(const Experiment& experiment);

}  // namespace optimus::step
