#pragma once
// Memory of the GPUs that hold encoder stages beside the LLM's, and what fits into it (the paper,
// section 4.1, step 3; decision 9 of the calibration notes: activations count).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/units.h"
#include "schedule/planner/encoder_plan.h"
#include "schedule/planner/splits.h"
#include "schedule/step/stack.h"
#include "schedule/step/step.h"

namespace optimus::planner {

// What one encoder stage adds to each of its GPUs.
struct EncoderStageMemory {
  // bf16 parameters, fp32 gradients and 12 bytes of optimizer state a trained parameter (divided by
  // DP_enc under the distributed optimizer), and workspace: recomputing the largest layer, one
  // gathered layer input, a buffer for each message in and out, both ways. No activations.
  step::StageMemory fixed;
  // Kept from the forward to the backward of one micro-batch (models/accounting.h; the projector's
  // input). Layers of a frozen encoder keep nothing.
  Bytes activations_per_micro_batch;
};

// By encoder stage. `module`: index into stack.modules, > 0; its own tensor parallelism is not
// looked at, the plan's is. `plan` must suit the model (ValidatePlanFor).
absl::StatusOr<std::vector<EncoderStageMemory>> EncoderMemory(const step::Plan& llm,
                                                              const step::Stack& stack, int module,
                                                              const EncoderPlan& plan);

// One encoder on the GPUs of an LLM pipeline.
struct EncoderOnGpus {
  EncoderPlan plan;
  std::vector<EncoderStageMemory> stages;
  std::int32_t micro_batches = 0;  // that hold input for it
};

step::StageMemory Sum(const step::StageMemory& a, const step::StageMemory& b);

// LLM and encoders together, by LLM stage: the fullest of the stage's tensor-parallel ranks, which
// differ where different encoder pipelines are on them. Encoder pipeline j holds the activations of
// its splits[encoder][j] micro-batches at once: before the first backward all forwards may be done.
std::vector<step::StageMemory> MemoryWithEncoders(absl::Span<const step::StageMemory> llm_stages,
                                                  std::int32_t llm_tensor_parallel,
                                                  absl::Span<const EncoderOnGpus> encoders,
                                                  absl::Span<const Split> splits);

// The stage that needs most.
const step::StageMemory& Fullest(absl::Span<const step::StageMemory> stages);

// Empty: every stage fits. Otherwise the first of those that need most, by category:
// "GPU memory of stage 3: 93.1 GiB needed (parameters 30.2, gradients 20.1, optimizer state 1.0,
// activations 31.5, workspace 10.3), 80.0 GiB there".
std::string WhyItDoesNotFit(absl::Span<const step::StageMemory> stages, Bytes capacity);

// By encoder: the most micro-batches a pipeline may hold, wherever it sits, so that any splits
// within these numbers fit together. Every encoder gets what its balanced split needs; what is left
// goes to the encoders in their order. RESOURCE_EXHAUSTED with WhyItDoesNotFit where not even the
// balanced splits fit.
absl::StatusOr<std::vector<std::int32_t>> MostMicroBatches(
    absl::Span<const step::StageMemory> llm_stages, std::int32_t llm_tensor_parallel,
    absl::Span<const EncoderOnGpus> encoders, Bytes capacity);

}  // namespace optimus::planner
