#include "schedule/bubble/paper_phases.h"

#include <utility>

namespace optimus::bubble::paper {
namespace {

constexpr auto kForeverLater = std::numeric_limits<std::int64_t>::max();

}  // namespace

ForwardPhase::ForwardPhase(const Models& models, std::vector<std::int64_t> needed,
                           std::int64_t floor, bool moves)
    : models_(models), needed_(std::move(needed)), floor_(floor), moves_(moves) {}

const ForwardPlan& ForwardPhase::Plan(const planner::Split& split) {
  plan_.moved.assign(split.size(), 0);
  line_.clear();
  slots_.clear();
  for (std::size_t j = 0; j < split.size(); ++j) {
    for (std::int32_t k = 0; k < split[j]; ++k) {
      line_.push_back(
          {models_[j]->LineArrival(static_cast<std::size_t>(k)), static_cast<std::int32_t>(j), k});
    }
  }
  std::sort(line_.begin(), line_.end());
  Critical critical = LeastShift(split);
  while (moves_ && critical.pipeline >= 0) {
    const auto j = static_cast<std::size_t>(critical.pipeline);
    if (!Move(split, j)) break;
    const Critical next = LeastShift(split);
    if (next.shift > critical.shift) {
      MoveBack(split, j);
      break;
    }
    critical = next;
  }
  plan_.shift = critical.shift;
  return plan_;
}

// The last one in line now.
Arrival ForwardPhase::InLine(const planner::Split& split, std::size_t pipeline) const {
  const std::size_t k = static_cast<std::size_t>(split[pipeline]) - plan_.moved[pipeline] - 1;
  return {models_[pipeline]->LineArrival(k), static_cast<std::int32_t>(pipeline),
          static_cast<std::int32_t>(k)};
}

// The next one in slots.
Arrival ForwardPhase::InSlots(std::size_t pipeline) const {
  const std::size_t x = plan_.moved[pipeline];
  return {models_[pipeline]->SlotArrival(x), static_cast<std::int32_t>(pipeline),
          static_cast<std::int32_t>(x)};
}

bool ForwardPhase::Move(const planner::Split& split, std::size_t pipeline) {
  const Arrival to = InSlots(pipeline);
  if (to.at == PipelineModel::kNoPlace) return false;
  line_.erase(std::lower_bound(line_.begin(), line_.end(), InLine(split, pipeline)));
  slots_.insert(std::lower_bound(slots_.begin(), slots_.end(), to), to);
  ++plan_.moved[pipeline];
  return true;
}

void ForwardPhase::MoveBack(const planner::Split& split, std::size_t pipeline) {
  --plan_.moved[pipeline];
  slots_.erase(std::lower_bound(slots_.begin(), slots_.end(), InSlots(pipeline)));
  const Arrival back = InLine(split, pipeline);
  line_.insert(std::lower_bound(line_.begin(), line_.end(), back), back);
}

ForwardPhase::Critical ForwardPhase::LeastShift(const planner::Split& split) const {
  Critical critical{floor_, -1};
  for (std::size_t j = 0; j < split.size(); ++j) {
    const std::int64_t overflow =
        models_[j]->LineOverflow(static_cast<std::size_t>(split[j]) - plan_.moved[j]);
    if (overflow > critical.shift) critical = {overflow, static_cast<std::int32_t>(j)};
  }
  AddDependencies(critical);
  return critical;
}

void ForwardPhase::AddDependencies(Critical& critical) const {
  std::size_t in_slots = 0;  // at the LLM by the time of its i-th micro-batch
  for (std::size_t i = 0; i < needed_.size(); ++i) {
    while (in_slots < slots_.size() && slots_[in_slots].at <= needed_[i]) ++in_slots;
    if (in_slots > i) continue;
    const std::size_t in_line = i - in_slots;  // it must have come as well, counted from 0
    if (in_line >= line_.size()) {
      critical = {kForeverLater, slots_[in_slots].pipeline};
      return;
    }
    const std::int64_t late = line_[in_line].at - needed_[i];
    if (late > critical.shift) critical = {late, line_[in_line].pipeline};
  }
}

const std::vector<Arrival>& ForwardPhase::Arrivals(const planner::Split& split) {
  arrivals_ = line_;
  for (Arrival arrival : slots_) {
    const auto j = static_cast<std::size_t>(arrival.pipeline);
    arrival.at += plan_.shift;
    arrival.order += split[j] - static_cast<std::int32_t>(plan_.moved[j]);
    arrivals_.push_back(arrival);
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  return arrivals_;
}

BackwardPhase::BackwardPhase(const Models& models, std::int64_t floor, bool moves)
    : models_(models), floor_(floor), moves_(moves) {}

bool BackwardPhase::Move(std::size_t pipeline, const Sequence& sequence,
                         std::size_t forward_moved) {
  State& state = states_[pipeline];
  if (!moves_ || state.moved == sequence.size()) return false;
  PipelineModel& model = *models_[pipeline];
  const std::int32_t node =
      state.moved == 0 ? model.SlotRoot(forward_moved, sequence[0]) : state.node;
  const std::int32_t next = model.SlotNext(node, sequence[state.moved]);
  if (next < 0) return false;
  const std::int64_t line = model.LineTail(absl::MakeConstSpan(sequence).subspan(state.moved + 1));
  const std::int64_t end = std::max(model.SlotTail(next), line);
  if (end >= state.end) return false;
  state = {next, state.moved + 1, end};
  return true;
}

std::int32_t BackwardPhase::FirstStuck(const std::vector<Sequence>& sequences,
                                       const std::vector<std::size_t>& forward_moved,
                                       std::int64_t limit) {
  for (std::size_t i = 0; i <= states_.size(); ++i) {
    const std::size_t j = i == 0 ? stuck_last_ : i - 1;
    while (states_[j].end >= limit) {
      if (Move(j, sequences[j], forward_moved[j])) continue;
      stuck_last_ = j;
      return static_cast<std::int32_t>(j);
    }
  }
  return -1;
}

std::int64_t BackwardPhase::End(const std::vector<Sequence>& sequences,
                                const std::vector<std::size_t>& forward_moved, std::int64_t limit) {
  states_.assign(sequences.size(), {});
  for (std::size_t j = 0; j < sequences.size(); ++j) {
    states_[j].end = models_[j]->LineTail(sequences[j]);
  }
  // Pipelines do not depend on each other: what has to get below the limit can be tried first.
  const std::int32_t stuck = FirstStuck(sequences, forward_moved, limit);
  if (stuck >= 0) return std::max(floor_, states_[static_cast<std::size_t>(stuck)].end);
  while (true) {
    const auto last =
        std::max_element(states_.begin(), states_.end(),
                         [](const State& a, const State& b) { return a.end < b.end; });
    const auto j = static_cast<std::size_t>(last - states_.begin());
    if (last->end <= floor_) return floor_;
    if (!Move(j, sequences[j], forward_moved[j])) return last->end;
  }
}

}  // namespace optimus::bubble::paper
