#include "schedule/bubble/slots.h"

#include <algorithm>

namespace optimus::bubble {
namespace {

void Append(Slots& slots, Interval slot) {
  if (slot.start < slot.end) slots.push_back(slot);
}

}  // namespace

std::int32_t LaneIndex(const Problem& problem, std::int32_t stage, std::int32_t lane) {
  return stage * problem.lanes + lane;
}

std::vector<LaneSlots> InteriorSlots(const Problem& problem) {
  std::vector<LaneSlots> lanes;
  lanes.reserve(problem.llm.stages.size() * static_cast<std::size_t>(problem.lanes));
  for (const LlmStage& stage : problem.llm.stages) {
    for (std::int32_t lane = 0; lane < problem.lanes; ++lane) {
      lanes.push_back({stage.compute_idle, stage.link_idle});
    }
  }
  return lanes;
}

Slots Intersect(const Slots& a, const Slots& b) {
  Slots both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    Append(both, {std::max(a[i].start, b[j].start), std::min(a[i].end, b[j].end)});
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return both;
}

LaneSlots Intersect(const LaneSlots& a, const LaneSlots& b) {
  return {Intersect(a.compute, b.compute), Intersect(a.link, b.link)};
}

Slots Subtract(const Slots& slots, absl::Span<const Interval> taken) {
  Slots left;
  left.reserve(slots.size() + taken.size());
  std::size_t next = 0;
  for (const Interval& slot : slots) {
    while (next < taken.size() && taken[next].end <= slot.start) ++next;
    Picoseconds start = slot.start;
    for (std::size_t i = next; i < taken.size() && taken[i].start < slot.end; ++i) {
      Append(left, {start, std::min(taken[i].start, slot.end)});
      start = std::max(start, taken[i].end);
    }
    Append(left, {start, slot.end});
  }
  return left;
}

LaneSlots SlotsOf(const std::vector<LaneSlots>& lanes, const Problem& problem,
                  const PipelinePlace& place) {
  const auto lane = [&](std::int32_t i) -> const LaneSlots& {
    return lanes[static_cast<std::size_t>(LaneIndex(problem, place.stage, place.first_lane + i))];
  };
  LaneSlots slots = lane(0);
  for (std::int32_t i = 1; i < place.lane_count; ++i) {
    if (lane(i) != lane(0)) slots = Intersect(slots, lane(i));
  }
  return slots;
}

}  // namespace optimus::bubble
