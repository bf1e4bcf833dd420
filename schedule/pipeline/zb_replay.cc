#include "schedule/pipeline/zb_replay.h"

#include <algorithm>

namespace optimus::pipeline {
namespace {

constexpr Picoseconds kUnknown(-1);

}  // namespace

ZbReplay::ZbReplay(const ZbProblem& problem, const MicroBatchPath& path)
    : problem_(problem),
      path_(path),
      starts_(problem.stages),
      ends_(problem.stages),
      first_start_(problem.stages),
      last_end_(problem.stages),
      messages_(problem.stages) {
  const auto micro_batches = static_cast<std::size_t>(problem.micro_batches);
  arrivals_.resize(static_cast<std::size_t>(path.steps()) * micro_batches);
  slots_.resize(arrivals_.size());
  for (int s = 0; s < problem.stages; ++s) {
    starts_[s].reserve(micro_batches * static_cast<std::size_t>(problem.chunks) * 3);
    ends_[s].reserve(starts_[s].capacity());
  }
}

Picoseconds ZbReplay::sum_of_spans() const {
  Picoseconds sum;
  for (int s = 0; s < problem_.stages; ++s) sum += last_end_[s] - first_start_[s];
  return sum;
}

void ZbReplay::Record(int stage, const Slot& slot, int step, Picoseconds arrival) {
  std::vector<Picoseconds>& ends = ends_[stage];
  const bool weight = slot.kind == SlotKind::kBackwardWeight;
  const Picoseconds start = ends.empty() ? arrival : std::max(arrival, ends.back());
  const Picoseconds time =
      weight ? problem_.times.backward_weight[stage][slot.chunk] : path_.time(step);
  if (!weight) slots_[Cell(step, slot.micro_batch)] = static_cast<std::uint32_t>(ends.size());
  starts_[stage].push_back(start);
  ends.push_back(start + time);
  if (weight || step + 1 == path_.steps()) return;
  Picoseconds& next_arrival = arrivals_[Cell(step + 1, slot.micro_batch)];
  next_arrival = ends.back();
  if (!path_.Sends(step)) return;
  next_arrival = messages_.Send(stage, slot.kind, ends.back(), path_.transfer(step));
  to_do_.push_back(path_.place(step + 1).stage);
}

void ZbReplay::Advance(const Order& order, int stage) {
  const std::vector<Slot>& slots = order.slots[stage];
  while (ends_[stage].size() < slots.size()) {
    const Slot& slot = slots[ends_[stage].size()];
    int step = 0;
    Picoseconds arrival;
    if (slot.kind != SlotKind::kBackwardWeight) {
      step = path_.StepOf({stage, slot.chunk}, slot.kind);
      arrival = arrivals_[Cell(step, slot.micro_batch)];
      if (arrival < Picoseconds(0)) return;
    }
    Record(stage, slot, step, arrival);
  }
}

bool ZbReplay::Run(const Order& order) {
  std::fill(arrivals_.begin(), arrivals_.end(), kUnknown);
  std::fill(arrivals_.begin(), arrivals_.begin() + problem_.micro_batches, Picoseconds(0));
  messages_.Clear();
  to_do_.clear();
  for (int s = problem_.stages - 1; s >= 0; --s) {
    starts_[s].clear();
    ends_[s].clear();
    to_do_.push_back(s);
  }
  while (!to_do_.empty()) {
    const int stage = to_do_.back();
    to_do_.pop_back();
    Advance(order, stage);
  }
  for (int s = 0; s < problem_.stages; ++s) {
    if (ends_[s].size() < order.slots[s].size()) return false;
    first_start_[s] = starts_[s].front();
    last_end_[s] = ends_[s].back();
  }
  return true;
}

}  // namespace optimus::pipeline
