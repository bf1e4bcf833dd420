#pragma once
// What every virtual stage does for one micro-batch, from its items or from measured times.

#include <vector>

#include "schedule/ir/schedule.h"
#include "schedule/step/lower.h"
#include "schedule/step/stack.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {

// Module, layer and (of an encoder's layer) slice of an item's operations.
ir::Tag TagOf(const Item& item, int slice);

// Encoder layers run slice by slice: the slice is the outer loop, the layer the inner one; backward
// is the mirror image. `blocks` must outlive the result. Interns transfers into `schedule`.
std::vector<VirtualStage> VirtualStagesOf(const Stack& stack, const ItemRanges& ranges,
                                          const BlockTable& blocks, ir::Schedule& schedule);

// Measured stages: one kernel of fixed duration forward; data gradient (and weight gradient apart,
// where it was measured) backward. The gradient is sent when both are done, as 1F1B does.
struct ProfiledBlocks {
  LoweredBlock forward, backward;
};
ProfiledBlocks BlocksOf(const ProfiledStages& times, int model_chunks, ir::Schedule& schedule);
std::vector<VirtualStage> VirtualStagesOf(const ProfiledStages& times, const ProfiledBlocks& blocks,
                                          ir::Schedule& schedule);

}  // namespace optimus::step
