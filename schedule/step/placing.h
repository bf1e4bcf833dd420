#pragma once
// Where the virtual stages of a step are: the shape of its pipeline without an order.

#include <vector>

#include "schedule/pipeline/order.h"
#include "schedule/pipeline/placement.h"

namespace optimus::step {

struct Placing {
  pipeline::Placement placement = pipeline::Placement::kLoop;
  int stages = 1, chunks = 1;

  int virtual_stages() const { return pipeline::VirtualStageCount(placement, stages, chunks); }
  int VirtualStageOf(pipeline::Place place) const {
    return pipeline::VirtualStageOf(placement, stages, place);
  }
  // Who holds a virtual stage: one place, or under kBidirectional two, by chunk.
  std::vector<pipeline::Place> PlacesOf(int virtual_stage) const;
  // True if a micro-batch stays on its stage between `virtual_stage` and the next: at the turns of
  // a V, and where there is one stage.
  bool StaysBehind(int virtual_stage) const;
  // Boundaries between virtual stages that a micro-batch crosses by messages.
  int CrossedBoundaries() const;
};

inline Placing PlacingOf(const pipeline::Order& order) {
  return {order.placement, order.stages, order.chunks};
}

}  // namespace optimus::step
