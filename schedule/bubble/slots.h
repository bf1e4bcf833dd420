#pragma once
// Idle slots of a lane and the bookkeeping of what encoders have taken of them. Lists of slots are
// sorted, disjoint and hold no empty slot. Slots touch only where an op of no length is between
// them.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "schedule/bubble/problem.h"

namespace optimus::bubble {

using Slots = std::vector<Interval>;

// One lane of one stage: compute slots take kernels, link slots take collectives.
struct LaneSlots {
  Slots compute, link;
  Slots& of(Resource resource) { return resource == Resource::kCompute ? compute : link; }
  const Slots& of(Resource resource) const {
    return resource == Resource::kCompute ? compute : link;
  }
  friend bool operator==(const LaneSlots&, const LaneSlots&) = default;
};

// By lane: index LaneIndex(). Slots between the LLM's own operations, times of the LLM alone.
std::vector<LaneSlots> InteriorSlots(const Problem& problem);
std::int32_t LaneIndex(const Problem& problem, std::int32_t stage, std::int32_t lane);

// What both lists have free.
Slots Intersect(const Slots& a, const Slots& b);
LaneSlots Intersect(const LaneSlots& a, const LaneSlots& b);

// What is left of `slots` without `taken` (sorted by start and end, disjoint). An empty one cuts
// its slot in two, because nothing may run across it.
Slots Subtract(const Slots& slots, absl::Span<const Interval> taken);

// The slots that all lanes of a pipeline's stage have free.
LaneSlots SlotsOf(const std::vector<LaneSlots>& lanes, const Problem& problem,
                  const PipelinePlace& place);

}  // namespace optimus::bubble
