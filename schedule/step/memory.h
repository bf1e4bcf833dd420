#pragma once
// Memory of one GPU of every pipeline stage.

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/stack.h"
#include "schedule/step/step.h"

namespace optimus::step {

// Of parameters on one GPU, `trained` of them with gradients and a share of the optimizer state:
// parameters, gradients and optimizer_state; the rest is 0. `shards`: GPUs that share that state.
StageMemory StateMemory(const Plan& plan, std::int64_t all, std::int64_t trained,
                        std::int64_t shards);

// Bytes that a virtual stage keeps of one micro-batch from its forward to its backward: of every
// trained layer what models/accounting.h says (with full recomputation its input), the projector's
// input, what embedding and head keep. A frozen layer keeps nothing.
Bytes ActivationBytes(const Stack& stack, int begin, int end);

// Bytes that it keeps from its data gradients to its weight gradients, where they run apart: inputs
// and output gradients of the linear layers. What was recomputed for the data gradients has to stay
// for the weight gradients, so that under full recomputation this is more than ActivationBytes.
Bytes WeightGradientBytes(const Stack& stack, int begin, int end);

// Of one micro-batch of one chunk.
struct KeptBytes {
  Bytes activations;       // from the forward to the backward
  Bytes weight_gradients;  // from the data gradients to the weight gradients
};

// The largest sum of what is kept while a stage works through its slots. A forward adds, the
// backward of the same micro-batch removes; a data gradient leaves what the weight gradient needs.
Bytes PeakActivations(const std::vector<pipeline::Slot>& slots,
                      const std::vector<KeptBytes>& by_chunk);

// What recomputing the largest layer of items [begin, end) needs.
Bytes RecomputeWorkspace(const Stack& stack, int begin, int end);

// Workspace is the sum of
//   - what recomputing the largest layer of the stage needs (layers are recomputed one at a time);
//   - one gathered layer input, tokens * h in bf16, under sequence parallelism (Megatron-LM's
//     global memory buffer);
//   - one buffer, of the largest message, for each of the pipeline's streams that the stage uses.
std::vector<StageMemory> MemoryByStage(const Plan& plan, const Stack& stack,
                                       const ItemRanges& ranges, const pipeline::Order& order);

// One stage of a 1F1B pipeline without model chunks that holds items [begin, end), whatever the
// other stages hold: what MemoryByStage says of it.
StageMemory OneFOneBStageMemory(const Plan& plan, const Stack& stack, int stage, int begin, int end,
                                std::int64_t micro_batches);

}  // namespace optimus::step
