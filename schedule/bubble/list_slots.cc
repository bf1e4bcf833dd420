#include "schedule/bubble/list_slots.h"

#include <algorithm>

namespace optimus::bubble {
namespace {

void Append(Slots& slots, Interval slot) {
  if (slot.start >= slot.end) return;
  if (!slots.empty() && slots.back().end >= slot.start) {
    slots.back().end = std::max(slots.back().end, slot.end);
  } else {
    slots.push_back(slot);
  }
}

Slots WithOuter(const LlmStage& stage, const Slots& inner) {
  Slots slots;
  slots.reserve(inner.size() + 2);
  slots.push_back({Picoseconds(-kForever), stage.first_start});
  for (const Interval& idle : inner) Append(slots, idle);
  Append(slots, {stage.last_end, Picoseconds(kForever)});
  return slots;
}

}  // namespace

LaneSlots AllSlots(const LlmStage& stage) {
  return {WithOuter(stage, stage.compute_idle), WithOuter(stage, stage.link_idle)};
}

Slots Mirror(const Slots& slots) {
  Slots mirrored;
  mirrored.reserve(slots.size());
  for (std::size_t i = slots.size(); i-- > 0;) {
    mirrored.push_back({-slots[i].end, -slots[i].start});
  }
  return mirrored;
}

Capacity::Capacity(const Slots& slots) : slots_(slots), before_(slots.size()) {
  std::size_t first = 0;  // the slot that holds 0, or else the first one after it
  while (slots_[first].end <= Picoseconds(0)) ++first;
  before_[first] = std::min<Ps>(slots_[first].start.value(), 0);
  for (std::size_t i = first + 1; i < slots_.size(); ++i) {
    before_[i] = before_[i - 1] + slots_[i - 1].length().value();
  }
  for (std::size_t i = first; i-- > 0;) before_[i] = before_[i + 1] - slots_[i].length().value();
}

Ps Capacity::Before(Ps at) const {
  const auto after = std::upper_bound(slots_.begin(), slots_.end(), at,
                                      [](Ps t, Interval slot) { return t < slot.start.value(); });
  const auto i = static_cast<std::size_t>(after - slots_.begin()) - 1;
  return before_[i] + (std::min(at, slots_[i].end.value()) - slots_[i].start.value());
}

Ps Capacity::Reach(Ps amount, Ps scale) const {
  // Of the slots that begin with less than `amount`, the last one.
  const Ps whole = amount / scale + (amount % scale > 0 ? 1 : 0);  // rounded up
  const auto after = std::lower_bound(before_.begin(), before_.end(), whole);
  const auto i = static_cast<std::size_t>(after - before_.begin()) - 1;
  return scale * (slots_[i].start.value() - before_[i]) + amount;
}

}  // namespace optimus::bubble
