#include "schedule/pipeline/zb_list.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace optimus::pipeline {
namespace {

constexpr Picoseconds kNever(std::numeric_limits<std::int64_t>::max());

struct StageState {
  Picoseconds free;
  std::optional<SlotKind> last;
  Held held;
  // By chunk: the micro-batch that is next.
  std::vector<int> forward, data, weight;
};

// What a stage could start now, and what is about to arrive.
struct Choices {
  std::optional<int> forward, data, weight;  // chunks
  bool room = false;                         // for a forward that has not arrived
  Picoseconds next_forward = kNever, next_data = kNever;
};

class ListScheduler {
 public:
  ListScheduler(const ZbProblem& problem, const MicroBatchPath& path, const ZbPolicy& policy)
      : problem_(problem),
        path_(path),
        policy_(policy),
        stages_(problem.stages),
        step_(problem.micro_batches, -1),
        end_(problem.micro_batches) {
    order_ = Order{problem.stages, problem.chunks, problem.micro_batches, {}, problem.placement};
    order_.slots.resize(stages_.size());
    const auto slots = static_cast<std::size_t>(problem.chunks) *
                       static_cast<std::size_t>(problem.micro_batches) * 3;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].forward.resize(problem.chunks);
      stages_[s].data.resize(problem.chunks);
      stages_[s].weight.resize(problem.chunks);
      order_.slots[s].reserve(slots);
    }
  }

  Order Run() {
    for (int s = 0; s < problem_.stages; ++s) wake_.emplace(Picoseconds(0), s);
    while (!wake_.empty()) {
      const auto [now, stage] = wake_.top();
      wake_.pop();
      if (stages_[stage].free <= now) Decide(stage, now);
    }
    return std::move(order_);
  }

 private:
  // When `micro_batch` gets to `step` of its path. Exact if it runs the step before; else, where
  // the policy looks that far, as if it found all stages idle. kNever: unknown, or past.
  Picoseconds Arrival(int step, int micro_batch, bool look_far) const {
    if (micro_batch >= problem_.micro_batches) return kNever;
    const int at = step_[micro_batch];
    if (at < 0) return step == 0 ? Picoseconds(0) : kNever;
    if (at != step - 1 && (!look_far || at >= step)) return kNever;
    const Picoseconds there = end_[micro_batch] + path_.transfer(at);
    return there + (path_.arrival(step) - path_.arrival(at + 1));
  }

  // A forward of an earlier chunk leaves room for one micro-batch in each of the later chunks:
  // without it, micro-batches that cannot end would fill the stage.
  bool Room(int stage, int chunk) const {
    Held held = stages_[stage].held;
    held.whole += problem_.chunks - chunk;
    return Fits(held, problem_.shares, problem_.memory_limit[stage]) &&
           (!policy_.split_memory || chunk > 0 || RoomInFirstChunk(stage));
  }

  bool RoomInFirstChunk(int stage) const {
    const StageState& state = stages_[stage];
    const Held first{state.forward[0] - state.data[0] + 1, state.data[0] - state.weight[0]};
    const int parts = 2 * problem_.stages;
    const double limit = problem_.memory_limit[stage] * (parts - 1 - stage) / parts;
    return Fits(first, problem_.shares, std::max(limit, 1.0));
  }

  void LookAtForward(int stage, int chunk, Picoseconds now, Choices& choices) const {
    const int micro_batch = stages_[stage].forward[chunk];
    const Picoseconds arrival = Arrival(path_.ForwardStep({stage, chunk}), micro_batch, false);
    const bool room = Room(stage, chunk);
    if (arrival > now) {
      choices.next_forward = std::min(choices.next_forward, arrival);
      choices.room = choices.room || room;
    } else if (room && !choices.forward.has_value()) {
      choices.forward = chunk;
    }
  }

  void LookAtData(int stage, int chunk, Picoseconds now, Choices& choices) const {
    const int micro_batch = stages_[stage].data[chunk];
    const int step = path_.BackwardStep({stage, chunk});
    const Picoseconds exact = Arrival(step, micro_batch, false);
    if (exact <= now) {
      if (!choices.data.has_value()) choices.data = chunk;
      return;
    }
    const Picoseconds expected = Arrival(step, micro_batch, policy_.look_far);
    if (expected > now) choices.next_data = std::min(choices.next_data, expected);
  }

  // Chunks in the order of the policy: the first that is ready is taken. Virtual stages of one
  // stage grow with the chunk, so gradients are late in the first.
  Choices Look(int stage, Picoseconds now) const {
    Choices choices;
    const int last = problem_.chunks - 1;
    for (int i = 0; i <= last; ++i) {
      LookAtForward(stage, last - i, now, choices);
      LookAtData(stage, policy_.late_gradients_first ? i : last - i, now, choices);
      const StageState& state = stages_[stage];
      if (!choices.weight.has_value() && state.weight[last - i] < state.data[last - i]) {
        choices.weight = last - i;
      }
    }
    return choices;
  }

  // Whether work of `time` that starts now delays what arrives at `next` by more than `share` of
  // itself.
  static bool Delays(Picoseconds now, Picoseconds time, Picoseconds next, double share) {
    if (next == kNever) return false;
    return static_cast<double>((now + time - next).value()) >
           share * static_cast<double>(time.value());
  }

  bool MayRunForward(int stage, Picoseconds now, const Choices& choices) const {
    return choices.forward.has_value() &&
           !Delays(now, problem_.times.forward[stage][*choices.forward], choices.next_data,
                   policy_.forward_delay);
  }

  bool MayRunWeight(int stage, Picoseconds now, const Choices& choices) const {
    if (!choices.weight.has_value()) return false;
    Picoseconds next = choices.next_data;
    if (policy_.weights_wait_for_forwards && choices.room) {
      next = std::min(next, choices.next_forward);
    }
    return !Delays(now, problem_.times.backward_weight[stage][*choices.weight], next,
                   policy_.weight_delay);
  }

  void Decide(int stage, Picoseconds now) {
    const Choices choices = Look(stage, now);
    if (choices.data.has_value()) {
      const bool turn_of_forward = policy_.alternate && stages_[stage].last != SlotKind::kForward;
      if (choices.forward.has_value() && turn_of_forward) {
        Start(stage, SlotKind::kForward, *choices.forward, now);
      } else {
        Start(stage, SlotKind::kBackwardData, *choices.data, now);
      }
    } else if (MayRunForward(stage, now, choices)) {
      Start(stage, SlotKind::kForward, *choices.forward, now);
    } else if (MayRunWeight(stage, now, choices)) {
      Start(stage, SlotKind::kBackwardWeight, *choices.weight, now);
    } else if (const Picoseconds next = std::min(choices.next_data, choices.next_forward);
               next != kNever) {
      wake_.emplace(next, stage);
    }
  }

  void Start(int stage, SlotKind kind, int chunk, Picoseconds now) {
    StageState& state = stages_[stage];
    state.last = kind;
    state.held.Add(kind);
    if (kind == SlotKind::kBackwardWeight) {
      order_.slots[stage].push_back({kind, chunk, state.weight[chunk]++});
      state.free = now + problem_.times.backward_weight[stage][chunk];
    } else {
      int& next = (kind == SlotKind::kForward ? state.forward : state.data)[chunk];
      const int step = path_.StepOf({stage, chunk}, kind);
      order_.slots[stage].push_back({kind, chunk, next});
      state.free = now + path_.time(step);
      step_[next] = step;
      end_[next] = state.free;
      ++next;
      if (step + 1 < path_.steps()) {
        wake_.emplace(state.free + path_.transfer(step), path_.place(step + 1).stage);
      }
    }
    wake_.emplace(state.free, stage);
  }

  const ZbProblem& problem_;
  const MicroBatchPath& path_;
  const ZbPolicy& policy_;
  std::vector<StageState> stages_;
  // By micro-batch: the last step that was started, and its end.
  std::vector<int> step_;
  std::vector<Picoseconds> end_;
  using Wake = std::pair<Picoseconds, int>;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wake_;
  Order order_;
};

}  // namespace

Order ListSchedule(const ZbProblem& problem, const MicroBatchPath& path, const ZbPolicy& policy) {
  return ListScheduler(problem, path, policy).Run();
}

}  // namespace optimus::pipeline
