#pragma once
// What the automatic schedules want to know of the stages: how long their slots last, and what they
// keep.

#include <vector>

#include "base/cost_model.h"
#include "base/units.h"
#include "schedule/ir/schedule.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/step/placing.h"
#include "schedule/step/stack.h"
#include "schedule/step/virtual_stages.h"

namespace optimus::step {

// Of every stage and chunk. Blocks are priced one by one, each alone on its GPU (BlockTime); a
// message takes as long as the slowest between any two stages, without contention.
pipeline::SlotTimes TimesOf(const Placing& placing, const std::vector<VirtualStage>& virtual_stages,
                            const ir::Schedule& schedule, const CostModel& costs);

// WeightGradientBytes over ActivationBytes, of the virtual stage where that is the most. May be
// above 1, under recomputation. 1 where nothing is kept.
double WeightShare(const Stack& stack, const ItemRanges& ranges);

// What a stage keeps of one micro-batch of one chunk: of its chunks the one that keeps most.
struct MicroBatchBytes {
  Bytes activations;       // ActivationBytes; where that is none, WeightGradientBytes
  Bytes weight_gradients;  // WeightGradientBytes
};
std::vector<MicroBatchBytes> MicroBatchBytesByStage(const Stack& stack, const ItemRanges& ranges,
                                                    const Placing& placing);

}  // namespace optimus::step
