#include "schedule/pipeline/zb_list.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/pipeline/message_queues.h"
#include "schedule/pipeline/wake_queue.h"

namespace optimus::pipeline {
namespace {

constexpr Picoseconds kNever(std::numeric_limits<std::int64_t>::max());

struct StageState {
  Picoseconds free;
  std::optional<SlotKind> last;
  Held held;
  double first_chunk_limit = 0;  // ZbPolicy::split_memory
};

// One chunk of a stage: the micro-batch that is next.
struct ChunkState {
  int forward = 0, data = 0, weight = 0;
  int forward_step = 0, data_step = 0;  // of a micro-batch's path
};

// What a stage could start now, and what is about to arrive.
struct Choices {
  std::optional<int> forward, data;  // chunks
  bool room = false;                 // for a forward that has not arrived
  Picoseconds next_forward = kNever, next_data = kNever;
};

// Slots as they start, in their order, without the waits that turned out to be for nothing: what
// ZbReplay makes of the order.
class ScoreSoFar {
 public:
  ScoreSoFar(const ZbProblem& problem, const MicroBatchPath& path, Picoseconds most)
      : problem_(problem),
        path_(path),
        most_(most),
        arrivals_(problem.micro_batches),
        first_start_(problem.stages, kNever),
        free_(problem.stages),
        work_left_(problem.stages),
        messages_(problem.stages) {
    for (int s = 0; s < problem.stages; ++s) {
      for (int c = 0; c < problem.chunks; ++c) {
        work_left_[s] += problem.micro_batches *
                         (problem.times.forward[s][c] + problem.times.backward_data[s][c] +
                          problem.times.backward_weight[s][c]);
      }
    }
  }

  // `step`: of the path, for all but weight gradients.
  void Add(int stage, const Slot& slot, int step, Picoseconds time) {
    const bool weight = slot.kind == SlotKind::kBackwardWeight;
    Picoseconds& free = free_[stage];
    if (!weight) free = std::max(free, arrivals_[slot.micro_batch]);
    first_start_[stage] = std::min(first_start_[stage], free);
    free += time;
    work_left_[stage] -= time;
    if (!weight) {
      arrivals_[slot.micro_batch] =
          path_.Sends(step) ? messages_.Send(stage, slot.kind, free, path_.transfer(step)) : free;
    }
    // The stage has at least the rest of its work to do.
    const Picoseconds from =
        problem_.objective == ZbObjective::kStageSpan ? first_start_[stage] : Picoseconds(0);
    given_up_ = given_up_ || free + work_left_[stage] - from > most_;
  }

  bool given_up() const { return given_up_; }
  // Of all slots.
  ZbScore score() const { return ScoreOf(first_start_, free_, problem_.objective); }

 private:
  const ZbProblem& problem_;
  const MicroBatchPath& path_;
  Picoseconds most_;
  bool given_up_ = false;
  std::vector<Picoseconds> arrivals_;                        // by micro-batch: at its next step
  std::vector<Picoseconds> first_start_, free_, work_left_;  // by stage
  MessageQueues messages_;
};

class ListScheduler {
 public:
  // `most`: as ListScore; without it the order is recorded.
  ListScheduler(const ZbProblem& problem, const MicroBatchPath& path, const ZbPolicy& policy,
                std::optional<Picoseconds> most)
      : problem_(problem),
        path_(path),
        policy_(policy),
        stages_(problem.stages),
        chunks_(stages_.size() * static_cast<std::size_t>(problem.chunks)),
        step_(problem.micro_batches, -1),
        there_(problem.micro_batches),
        messages_(problem.stages),
        wakes_(problem.stages) {
    for (int s = 0; s < problem.stages; ++s) {
      const int parts = 2 * problem.stages;
      stages_[s].first_chunk_limit =
          std::max(problem.memory_limit[s] * (parts - 1 - s) / parts, 1.0);
      for (int c = 0; c < problem.chunks; ++c) {
        ChunkOf(s, c).forward_step = path.ForwardStep({s, c});
        ChunkOf(s, c).data_step = path.BackwardStep({s, c});
      }
    }
    if (most.has_value()) {
      score_.emplace(problem, path, *most);
    } else {
      PrepareOrder();
    }
  }

  // False if it was given up.
  bool Run() {
    for (int s = 0; s < problem_.stages; ++s) wakes_.Add(s, Picoseconds(0));
    Picoseconds now;
    int stage = 0;
    while (wakes_.Take(now, stage)) {
      Decide(stage, now);
      if (score_.has_value() && score_->given_up()) return false;
    }
    return true;
  }

  Order TakeOrder() { return std::move(order_); }
  ZbScore score() const { return score_->score(); }
  SameDelays same() const { return same_; }

 private:
  void PrepareOrder() {
    order_ =
        Order{problem_.stages, problem_.chunks, problem_.micro_batches, {}, problem_.placement};
    order_.slots.resize(stages_.size());
    const auto slots = static_cast<std::size_t>(problem_.chunks) *
                       static_cast<std::size_t>(problem_.micro_batches) * 3;
    for (auto& stage : order_.slots) stage.reserve(slots);
  }

  ChunkState& ChunkOf(int stage, int chunk) {
    return chunks_[static_cast<std::size_t>(stage) * static_cast<std::size_t>(problem_.chunks) +
                   static_cast<std::size_t>(chunk)];
  }

  // When `micro_batch` gets to `step` of its path. Exact if it runs the step before; else, where
  // the policy looks that far, as if it found all stages idle. kNever: unknown, or past.
  Picoseconds Arrival(int step, int micro_batch, bool look_far) const {
    if (micro_batch >= problem_.micro_batches) return kNever;
    const int at = step_[micro_batch];
    if (at < 0) return step == 0 ? Picoseconds(0) : kNever;
    if (at == step - 1) return there_[micro_batch];
    if (!look_far || at >= step) return kNever;
    return there_[micro_batch] + (path_.arrival(step) - path_.arrival(at + 1));
  }

  // A forward of an earlier chunk leaves room for one micro-batch in each of the later chunks, and
  // what a data gradient adds has room once no weight gradients wait: without it, micro-batches
  // that cannot end would fill the stage.
  bool Room(int stage, int chunk) {
    Held held = stages_[stage].held;
    held.whole += problem_.chunks - chunk;
    const double limit = problem_.memory_limit[stage];
    const double share = problem_.shares.Of(stage);
    return Fits(held, share, limit) && Fits({held.whole, 0}, share, limit - AddedByData(share)) &&
           (!policy_.split_memory || chunk > 0 || RoomInFirstChunk(stage));
  }

  bool RoomForData(int stage) const {
    Held held = stages_[stage].held;
    held.Add(SlotKind::kBackwardData);
    return Fits(held, problem_.shares.Of(stage), problem_.memory_limit[stage]);
  }

  bool RoomInFirstChunk(int stage) {
    const ChunkState& first = ChunkOf(stage, 0);
    const Held held{first.forward - first.data + 1, first.data - first.weight};
    return Fits(held, problem_.shares.Of(stage), stages_[stage].first_chunk_limit);
  }

  // Of the forwards that are ready, the one of the latest chunk.
  void LookAtForwards(int stage, Picoseconds now, Choices& choices) {
    for (int chunk = problem_.chunks - 1; chunk >= 0; --chunk) {
      const ChunkState& state = ChunkOf(stage, chunk);
      const Picoseconds arrival = Arrival(state.forward_step, state.forward, false);
      const bool room = Room(stage, chunk);
      if (arrival > now) {
        choices.next_forward = std::min(choices.next_forward, arrival);
        choices.room = choices.room || room;
      } else if (room && !choices.forward.has_value()) {
        choices.forward = chunk;
      }
    }
  }

  // Virtual stages of one stage grow with the chunk, so gradients are late in the first. What is
  // about to arrive counts only where nothing is ready.
  void LookAtData(int stage, Picoseconds now, Choices& choices) {
    for (int i = 0; i < problem_.chunks; ++i) {
      const int chunk = policy_.late_gradients_first ? i : problem_.chunks - 1 - i;
      const ChunkState& state = ChunkOf(stage, chunk);
      if (Arrival(state.data_step, state.data, false) <= now) {
        choices.data = chunk;
        return;
      }
      const Picoseconds expected = Arrival(state.data_step, state.data, policy_.look_far);
      if (expected > now) choices.next_data = std::min(choices.next_data, expected);
    }
  }

  std::optional<int> WeightOf(int stage) {
    for (int chunk = problem_.chunks - 1; chunk >= 0; --chunk) {
      if (ChunkOf(stage, chunk).weight < ChunkOf(stage, chunk).data) return chunk;
    }
    return std::nullopt;
  }

  // Whether work of `time` that starts now delays what arrives at `next` by more than `share` of
  // itself.
  static bool Delays(Picoseconds now, Picoseconds time, Picoseconds next, double share,
                     std::uint32_t& same) {
    if (next == kNever) return false;
    const auto delay = static_cast<double>((now + time - next).value());
    const auto of_time = static_cast<double>(time.value());
    const bool delays = delay > share * of_time;
    for (std::size_t i = 0; i < kZbDelays.size(); ++i) {
      if ((delay > kZbDelays[i] * of_time) != delays) same &= ~(1U << i);
    }
    return delays;
  }

  bool MayRunForward(int stage, Picoseconds now, const Choices& choices) {
    return choices.forward.has_value() &&
           !Delays(now, problem_.times.forward[stage][*choices.forward], choices.next_data,
                   policy_.forward_delay, same_.forward);
  }

  bool MayRunWeight(int stage, Picoseconds now, int chunk, const Choices& choices) {
    Picoseconds next = choices.next_data;
    if (policy_.weights_wait_for_forwards && choices.room) {
      next = std::min(next, choices.next_forward);
    }
    return !Delays(now, problem_.times.backward_weight[stage][chunk], next, policy_.weight_delay,
                   same_.weight);
  }

  void Decide(int stage, Picoseconds now) {
    Choices choices;
    LookAtData(stage, now, choices);
    const std::optional<int> weight = WeightOf(stage);
    // A forward left room for it but for the weight gradients that wait.
    if (choices.data.has_value() && weight.has_value() && !RoomForData(stage)) {
      return Start(stage, SlotKind::kBackwardWeight, *weight, now);
    }
    const bool turn_of_forward = policy_.alternate && stages_[stage].last != SlotKind::kForward;
    if (choices.data.has_value() && !turn_of_forward) {
      return Start(stage, SlotKind::kBackwardData, *choices.data, now);
    }
    LookAtForwards(stage, now, choices);
    if (choices.data.has_value()) {
      return choices.forward.has_value()
                 ? Start(stage, SlotKind::kForward, *choices.forward, now)
                 : Start(stage, SlotKind::kBackwardData, *choices.data, now);
    }
    if (MayRunForward(stage, now, choices)) {
      return Start(stage, SlotKind::kForward, *choices.forward, now);
    }
    if (weight.has_value() && MayRunWeight(stage, now, *weight, choices)) {
      return Start(stage, SlotKind::kBackwardWeight, *weight, now);
    }
    const Picoseconds next = std::min(choices.next_data, choices.next_forward);
    if (next != kNever) wakes_.Add(stage, next);
  }

  void Start(int stage, SlotKind kind, int chunk, Picoseconds now) {
    StageState& state = stages_[stage];
    state.last = kind;
    state.held.Add(kind);
    ChunkState& of_chunk = ChunkOf(stage, chunk);
    Slot slot{kind, chunk, 0};
    int step = 0;
    Picoseconds time;
    if (kind == SlotKind::kBackwardWeight) {
      slot.micro_batch = of_chunk.weight++;
      time = problem_.times.backward_weight[stage][chunk];
    } else {
      const bool forward = kind == SlotKind::kForward;
      slot.micro_batch = (forward ? of_chunk.forward : of_chunk.data)++;
      step = forward ? of_chunk.forward_step : of_chunk.data_step;
      time = path_.time(step);
    }
    state.free = now + time;
    wakes_.SleepUntil(stage, state.free);
    if (score_.has_value()) {
      score_->Add(stage, slot, step, time);
    } else {
      order_.slots[stage].push_back(slot);
    }
    if (kind != SlotKind::kBackwardWeight) MoveOn(stage, slot, step);
  }

  // The micro-batch of `slot`, which has just started `step`, goes to the next one.
  void MoveOn(int stage, const Slot& slot, int step) {
    step_[slot.micro_batch] = step;
    if (step + 1 == path_.steps()) return;
    Picoseconds& there = there_[slot.micro_batch];
    there = stages_[stage].free;
    if (!path_.Sends(step)) return;
    there = messages_.Send(stage, slot.kind, there, path_.transfer(step));
    const int to = path_.place(step + 1).stage;
    // Before it is free it does not look.
    if (there >= stages_[to].free) wakes_.Add(to, there);
  }

  const ZbProblem& problem_;
  const MicroBatchPath& path_;
  const ZbPolicy& policy_;
  std::vector<StageState> stages_;
  std::vector<ChunkState> chunks_;  // by stage, then chunk
  // By micro-batch: the last step that was started, and when the next one can.
  std::vector<int> step_;
  std::vector<Picoseconds> there_;
  MessageQueues messages_;
  WakeQueue wakes_;
  SameDelays same_;
  std::optional<ScoreSoFar> score_;
  Order order_;
};

}  // namespace

Order ListSchedule(const ZbProblem& problem, const MicroBatchPath& path, const ZbPolicy& policy) {
  ListScheduler scheduler(problem, path, policy, std::nullopt);
  scheduler.Run();
  return scheduler.TakeOrder();
}

ListScoreResult ListScore(const ZbProblem& problem, const MicroBatchPath& path,
                          const ZbPolicy& policy, Picoseconds most) {
  ListScheduler scheduler(problem, path, policy, most);
  ListScoreResult result;
  if (scheduler.Run()) result.score = scheduler.score();
  result.same = scheduler.same();
  return result;
}

}  // namespace optimus::pipeline
