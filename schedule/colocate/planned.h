#pragma once
// Encoders with the plans they have been given: what they take of the GPUs, and the bubble
// scheduler's problem.

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/kernel.h"
#include "schedule/bubble/problem.h"
#include "schedule/colocate/encoder_work.h"
#include "schedule/colocate/llm_step.h"
#include "schedule/planner/memory.h"

namespace optimus::colocate {

struct PlannedEncoder {
  int encoder = 0;
  planner::EncoderOnGpus on_gpus;  // plan, memory, micro-batches
  const planner::EncoderPlan& plan() const { return on_gpus.plan; }
};

// INVALID_ARGUMENT with the reason where the plan does not suit the encoder.
absl::StatusOr<PlannedEncoder> PlanEncoder(const EncoderContext& context, int encoder,
                                           const planner::EncoderPlan& plan);

std::vector<planner::EncoderOnGpus> OnGpus(absl::Span<const PlannedEncoder> encoders);

// By LLM stage: the optimizer step on the parameters of the LLM and of the encoders together.
std::vector<Kernel> OptimizerKernels(const EncoderContext& context, const LlmStep& llm,
                                     absl::Span<const PlannedEncoder> encoders);

// Replaces the encoders of `problem`, whose LLM is `llm`'s, and what depends on them: lanes, and
// the optimizer step at the end. Sets the lanes of `tables` and interns the encoders' work there.
absl::Status SetEncoders(const EncoderContext& context, const LlmStep& llm,
                         absl::Span<const PlannedEncoder> encoders, ir::Schedule& tables,
                         bubble::Problem& problem);

}  // namespace optimus::colocate
