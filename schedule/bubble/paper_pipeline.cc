#include "schedule/bubble/paper_pipeline.h"

namespace optimus::bubble::paper {
namespace {

bool SameLines(const std::vector<InLine>& a, const std::vector<InLine>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const InLine& x, const InLine& y) { return x.free == y.free; });
}

std::int64_t LatestEnd(const UnitTimes& times) {
  std::int64_t latest = kNever;
  for (const auto& ends : times.ends) {
    for (const std::int64_t end : ends) latest = std::max(latest, end);
  }
  return latest;
}

const std::int32_t* Find(const std::vector<std::pair<std::int64_t, std::int32_t>>& next,
                         std::int64_t from) {
  for (const auto& entry : next) {
    if (entry.first == from) return &entry.second;
  }
  return nullptr;
}

// Slots after every one of many micro-batches would take memory by the square of their number.
// After so many, only every so manyth is kept; the others are worked out again from the one before.
constexpr std::size_t kKeptSlots = 32;
bool IsKept(std::size_t count) { return count < kKeptSlots || count % kKeptSlots == 0; }

}  // namespace

bool SameLanes(const PipelineLanes& a, const PipelineLanes& b) {
  return a.first_start == b.first_start && a.to_llm == b.to_llm && a.from_llm == b.from_llm &&
         a.forward_hops == b.forward_hops && a.backward_hops == b.backward_hops &&
         SameLines(a.before, b.before) && SameLines(a.after, b.after) && a.slots == b.slots;
}

void DropShort(const std::vector<std::array<std::int64_t, 2>>& shortest, SlotState& slots) {
  for (std::size_t p = 0; p < slots.size(); ++p) {
    for (std::size_t r = 0; r < 2; ++r) {
      const Picoseconds least(shortest[p][r]);
      Slots& list = slots[p][r];
      list.erase(std::remove_if(list.begin(), list.end(),
                                [&](const Interval& slot) { return slot.length() < least; }),
                 list.end());
    }
  }
}

PipelineModel::PipelineModel(const EncoderFlows& flows, PipelineLanes lanes)
    : flows_(flows), lanes_(std::move(lanes)) {
  line_ = lanes_.before;
  line_overflow_.push_back(kNever);
  forward_slots_.push_back(lanes_.slots);
  forward_last_.push_back(kNever);
  LineNode& root = line_nodes_.emplace_back();
  root.lines.assign(lanes_.after.rbegin(), lanes_.after.rend());
  kept_.resize(1);
  const auto empty = [](const FlatStage& stage) { return stage.ops.empty(); };
  if (std::any_of(flows_.backward.begin(), flows_.backward.end(), empty)) {
    for (const std::int64_t hop : lanes_.backward_hops) passing_ += hop;
  }
}

const UnitTimes& PipelineModel::RunLineForward(std::vector<InLine>& lines) {
  RunUnit(flows_.forward, flows_.gathers, lanes_.forward_hops, 0, lines, times_);
  return times_;
}

const UnitTimes& PipelineModel::RunLineBackward(std::vector<InLine>& lines, std::int64_t from) {
  RunUnit(flows_.backward, flows_.no_gathers, lanes_.backward_hops, from, lines, times_);
  return times_;
}

const UnitTimes* PipelineModel::RunSlots(const Flow& flow, const std::vector<std::int64_t>& hops,
                                         std::int64_t from, const SlotState& slots,
                                         SlotState& left) {
  const bool forward = &flow == &flows_.forward;
  left.resize(slots.size());
  walkers_.resize(slots.size());
  for (std::size_t q = 0; q < slots.size(); ++q) {
    const std::size_t p = forward ? q : slots.size() - 1 - q;
    for (std::size_t r = 0; r < 2; ++r) {
      // Backwards go by rising `from`: what lies before is not looked at again.
      walkers_[q].of[r].Begin(slots[p][r], left[p][r], from, flows_.shortest[p][r], !forward);
    }
  }
  if (!RunUnit(flow, flows_.no_gathers, hops, from, walkers_, times_)) return nullptr;
  for (InSlots& walker : walkers_) {
    for (SlotWalker& resource : walker.of) resource.Finish();
  }
  return &times_;
}

const UnitTimes* PipelineModel::RunSlotsForward(const SlotState& slots, SlotState& left) {
  return RunSlots(flows_.forward, lanes_.forward_hops, 0, slots, left);
}

const UnitTimes* PipelineModel::RunSlotsBackward(const SlotState& slots, std::int64_t from,
                                                 SlotState& left) {
  return RunSlots(flows_.backward, lanes_.backward_hops, from, slots, left);
}

void PipelineModel::FillLine(std::size_t count) {
  while (line_arrival_.size() < count) {
    line_arrival_.push_back(RunLineForward(line_).output + lanes_.to_llm);
    std::int64_t overflow = kNever;
    for (std::size_t p = 0; p < line_.size(); ++p) {
      for (const std::int64_t free : line_[p].free) {
        overflow = std::max(overflow, free - lanes_.first_start[p]);
      }
    }
    line_overflow_.push_back(overflow);
  }
}

std::int64_t PipelineModel::LineArrival(std::size_t k) {
  FillLine(k + 1);
  return line_arrival_[k];
}

std::int64_t PipelineModel::LineOverflow(std::size_t count) {
  FillLine(count);
  return line_overflow_[count];
}

std::int64_t PipelineModel::SlotArrival(std::size_t x) {
  while (slot_arrival_.size() <= x) {
    if (!slot_arrival_.empty() && slot_arrival_.back() == kNoPlace) return kNoPlace;
    SlotState left;
    const UnitTimes* times = RunSlotsForward(forward_slots_.back(), left);
    if (times == nullptr) {
      slot_arrival_.push_back(kNoPlace);
      continue;
    }
    slot_arrival_.push_back(times->output + lanes_.to_llm);
    forward_last_.push_back(std::max(forward_last_.back(), LatestEnd(*times)));
    if (!IsKept(forward_slots_.size() - 1)) forward_slots_.back() = SlotState();
    forward_slots_.push_back(std::move(left));
  }
  return slot_arrival_[x];
}

const SlotState& PipelineModel::SlotsAfterForward(std::size_t moved) {
  if (IsKept(moved) || moved + 1 == forward_slots_.size()) return forward_slots_[moved];
  if (restored_count_ == moved) return restored_;
  std::size_t count = moved - moved % kKeptSlots;
  if (restored_count_ > count && restored_count_ < moved) {
    count = restored_count_;
  } else {
    restored_ = forward_slots_[count];
  }
  for (SlotState left; count < moved; ++count) {
    RunSlotsForward(restored_, left);
    std::swap(restored_, left);
  }
  restored_count_ = moved;
  return restored_;
}

std::int32_t PipelineModel::LineNext(std::int32_t node, std::int64_t from) {
  auto& parent = line_nodes_[static_cast<std::size_t>(node)];
  // Gradients that are there before any lane is free wait alike.
  bool waits = false;
  for (const InLine& line : parent.lines) {
    for (const std::int64_t free : line.free) waits = waits || free < from + passing_;
  }
  if (!waits) from = kNever;
  if (const std::int32_t* known = Find(parent.next, from)) return *known;
  const auto child = static_cast<std::int32_t>(line_nodes_.size());
  parent.next.emplace_back(from, child);
  LineNode made;
  made.lines = parent.lines;
  made.tail = std::max(parent.tail, RunLineBackward(made.lines, from).tail);
  line_nodes_.push_back(std::move(made));
  return child;
}

std::int64_t PipelineModel::LineTail(absl::Span<const std::int64_t> from) {
  std::int32_t node = 0;
  for (const std::int64_t time : from) node = LineNext(node, time);
  return line_nodes_[static_cast<std::size_t>(node)].tail;
}

std::int32_t PipelineModel::SlotRoot(std::size_t forward_moved, std::int64_t first_from) {
  // Slots before the first gradient do not matter. One that a forward fills up to that very moment
  // does: an op without length would still fit at its end.
  if (forward_last_[forward_moved] < first_from) forward_moved = 0;
  if (slot_roots_.size() <= forward_moved) slot_roots_.resize(forward_moved + 1, -1);
  if (slot_roots_[forward_moved] < 0) {
    slot_roots_[forward_moved] = static_cast<std::int32_t>(slot_nodes_.size());
    slot_nodes_.emplace_back().parent = -1 - static_cast<std::int32_t>(forward_moved);
  }
  return slot_roots_[forward_moved];
}

const SlotState& PipelineModel::Kept(std::size_t depth) {
  if (depth > 0) return kept_[depth].slots;
  const std::int32_t parent = slot_nodes_[static_cast<std::size_t>(kept_[0].node)].parent;
  return SlotsAfterForward(static_cast<std::size_t>(-1 - parent));
}

std::size_t PipelineModel::KeepSlots(std::int32_t node) {
  path_.clear();
  for (std::int32_t at = node; at >= 0; at = slot_nodes_[static_cast<std::size_t>(at)].parent) {
    path_.push_back(at);
  }
  std::reverse(path_.begin(), path_.end());
  if (kept_.size() < path_.size() + 1) kept_.resize(path_.size() + 1);
  std::size_t depth = path_.size() - 1;
  while (depth > 0 && kept_[depth].node != path_[depth]) --depth;
  if (depth == 0) kept_[0].node = path_[0];
  for (; depth + 1 < path_.size(); ++depth) {
    KeptSlots& next = kept_[depth + 1];
    next.node = path_[depth + 1];
    RunSlotsBackward(Kept(depth), slot_nodes_[static_cast<std::size_t>(next.node)].from,
                     next.slots);
    if (!IsKept(depth)) kept_[depth] = KeptSlots();
  }
  for (std::size_t below = path_.size(); below < kept_.size(); ++below) {
    if (!IsKept(below)) kept_[below] = KeptSlots();
  }
  return depth;
}

std::int32_t PipelineModel::SlotNext(std::int32_t node, std::int64_t from) {
  if (const std::int32_t* known = Find(slot_nodes_[static_cast<std::size_t>(node)].next, from)) {
    return *known;
  }
  const std::size_t depth = KeepSlots(node);
  kept_[depth + 1].node = -1;
  const UnitTimes* times = RunSlotsBackward(Kept(depth), from, kept_[depth + 1].slots);
  std::int32_t child = -1;
  if (times != nullptr) {
    child = static_cast<std::int32_t>(slot_nodes_.size());
    SlotNode made;
    made.parent = node;
    made.from = from;
    made.tail = std::max(SlotTail(node), times->tail);
    slot_nodes_.push_back(std::move(made));
    kept_[depth + 1].node = child;
  }
  slot_nodes_[static_cast<std::size_t>(node)].next.emplace_back(from, child);
  return child;
}

}  // namespace optimus::bubble::paper
