#include "schedule/pipeline/zb_refill.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "schedule/pipeline/message_queues.h"

namespace optimus::pipeline {
namespace {

constexpr Picoseconds kUnknown(-1);

class Refiller {
 public:
  Refiller(const ZbProblem& problem, const MicroBatchPath& path, const Order& order, double delay)
      : problem_(problem),
        path_(path),
        delay_(delay),
        stages_(order.slots.size()),
        arrivals_(static_cast<std::size_t>(path.steps()) *
                      static_cast<std::size_t>(problem.micro_batches),
                  kUnknown),
        messages_(problem.stages) {
    std::fill(arrivals_.begin(), arrivals_.begin() + problem.micro_batches, Picoseconds(0));
    result_ = order;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].fixed.reserve(order.slots[s].size());
      std::copy_if(order.slots[s].begin(), order.slots[s].end(),
                   std::back_inserter(stages_[s].fixed),
                   [](const Slot& slot) { return slot.kind != SlotKind::kBackwardWeight; });
      result_.slots[s].clear();
      to_do_.push_back(static_cast<int>(s));
    }
  }

  Order Run() {
    while (!to_do_.empty()) {
      const int stage = to_do_.back();
      to_do_.pop_back();
      Advance(stage);
    }
    return std::move(result_);
  }

 private:
  struct Stage {
    std::vector<Slot> fixed;    // forwards and data gradients
    std::size_t next = 0;       // of `fixed`
    std::vector<Slot> weights;  // of the data gradients so far
    std::size_t next_weight = 0;
    Picoseconds free;
    Held held;
    bool has_weight() const { return next_weight < weights.size(); }
  };

  std::size_t Cell(int step, int micro_batch) const {
    return static_cast<std::size_t>(step) * static_cast<std::size_t>(problem_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }

  Picoseconds WeightTime(int stage, const Slot& slot) const {
    return problem_.times.backward_weight[stage][slot.chunk];
  }

  void RunWeight(int stage) {
    Stage& state = stages_[stage];
    const Slot& slot = state.weights[state.next_weight++];
    state.held.Add(slot.kind);
    state.free += WeightTime(stage, slot);
    result_.slots[stage].push_back(slot);
  }

  void RunFixed(int stage, int step, Picoseconds arrival) {
    Stage& state = stages_[stage];
    const Slot& slot = state.fixed[state.next++];
    state.held.Add(slot.kind);
    state.free = std::max(state.free, arrival) + path_.time(step);
    result_.slots[stage].push_back(slot);
    if (slot.kind == SlotKind::kBackwardData) {
      state.weights.push_back({SlotKind::kBackwardWeight, slot.chunk, slot.micro_batch});
    }
    if (step + 1 == path_.steps()) return;
    Picoseconds& next_arrival = arrivals_[Cell(step + 1, slot.micro_batch)];
    next_arrival = state.free;
    if (!path_.Sends(step)) return;
    next_arrival = messages_.Send(stage, slot.kind, state.free, path_.transfer(step));
    to_do_.push_back(path_.place(step + 1).stage);
  }

  // Whether the next weight gradient goes before a slot that arrives at `arrival`.
  bool WeightFirst(int stage, const Slot& slot, Picoseconds arrival) const {
    const Stage& state = stages_[stage];
    if (!state.has_weight()) return false;
    Held then = state.held;
    then.Add(slot.kind);
    if (!Fits(then, problem_.shares.Of(stage), problem_.memory_limit[stage])) return true;
    if (arrival <= state.free) return false;
    const Picoseconds time = WeightTime(stage, state.weights[state.next_weight]);
    return static_cast<double>((state.free + time - arrival).value()) <=
           delay_ * static_cast<double>(time.value());
  }

  // As far as the stage can go. Nothing is decided before it is known when the next slot arrives,
  // so the order in which stages advance does not matter.
  void Advance(int stage) {
    Stage& state = stages_[stage];
    while (state.next < state.fixed.size()) {
      const Slot& slot = state.fixed[state.next];
      const int step = path_.StepOf({stage, slot.chunk}, slot.kind);
      const Picoseconds arrival = arrivals_[Cell(step, slot.micro_batch)];
      if (arrival == kUnknown) return;
      while (WeightFirst(stage, slot, arrival)) RunWeight(stage);
      RunFixed(stage, step, arrival);
    }
    while (state.has_weight()) RunWeight(stage);
  }

  const ZbProblem& problem_;
  const MicroBatchPath& path_;
  double delay_;
  std::vector<Stage> stages_;
  std::vector<Picoseconds> arrivals_;
  MessageQueues messages_;
  std::vector<int> to_do_;
  Order result_;
};

}  // namespace

Order RefillWeights(const ZbProblem& problem, const MicroBatchPath& path, const Order& order,
                    double delay) {
  return Refiller(problem, path, order, delay).Run();
}

}  // namespace optimus::pipeline
