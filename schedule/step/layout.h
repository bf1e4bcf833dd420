#pragma once
// From the plan's layout to the items of every virtual stage. Embedding, projector and head ride
// along with their neighbour (embedding in front of the first LLM layer, projector behind its
// encoder's last layer, head behind the last LLM layer), as in Megatron-LM's pre- and post-process;
// only an explicit layout string places them itself.

#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "schedule/partition/partition.h"
#include "schedule/step/stack.h"

namespace optimus::step {

// `layer_times` is read for BALANCED only: one time per transformer layer, encoders first, with
// what rides along (LayerTimes in work_tables.h). For INTER_OPERATOR, which weighs memory too
// (LayOutInterOperator in alpa.h), this is any layout of as many stages: it shows that there are
// enough layers. Errors name plan.layout, plan.layout_string or plan.layer_counts.
absl::StatusOr<ItemRanges> LayOut(const Plan& plan, const Stack& stack,
                                  const std::vector<Picoseconds>& layer_times);

// For every transformer layer, encoders first: the item range [first, last) of the layer and what
// rides along with it.
struct LayerItems {
  int first = 0, last = 0;
};
std::vector<LayerItems> ItemsByLayer(const Stack& stack);

// Boundaries between layers to boundaries between items.
ItemRanges FromLayerBoundaries(const Stack& stack, const partition::Boundaries& boundaries);

}  // namespace optimus::step
