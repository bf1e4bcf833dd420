// Lower bounds on the step, each with the reason why no schedule can be faster.

#include <algorithm>
#include <vector>

#include "schedule/bubble/list_graph.h"
#include "schedule/bubble/list_slots.h"
#include "schedule/bubble/scheduler.h"
#include "schedule/bubble/sync.h"

namespace optimus::bubble {
namespace {

// Compute of one micro-batch over the lanes of one pipeline: a kernel of an encoder stage is on all
// lanes of that stage at once.
Ps LaneTime(const Problem& problem, const EncoderWork& encoder, Direction direction) {
  const auto& works = direction == Direction::kForward ? encoder.forward : encoder.backward;
  Ps sum = 0;
  for (const StageWork& work : works) sum += work.compute.value();
  return sum * (problem.lanes / (problem.tensor_parallel / encoder.plan.tensor_parallel));
}

struct Demand {
  Ps time = 0;    // deadline of a forward, release of a backward
  Ps amount = 0;  // lane time
};

Ps Least(const std::vector<Picoseconds>& times) {
  return times.empty() ? 0 : std::min_element(times.begin(), times.end())->value();
}

// Before this no forward of the encoder can start on its stage p: all its ops wait for gathers.
Ps FirstGathered(const EncoderWork& encoder, std::size_t p, const std::vector<Interval>& gathers) {
  Ps first = encoder.forward[p].ops.empty() ? 0 : kForever;
  for (const WorkOp& op : encoder.forward[p].ops) {
    const std::int32_t bucket = gathers.empty() ? -1 : BucketOf(encoder.sync.gathers[p], op.layer);
    if (bucket < 0) return 0;
    first = std::min(first, gathers[static_cast<std::size_t>(bucket)].end.value());
  }
  return first;
}

// The fluid bound. All times are those of the LLM alone; the shift of the LLM is what is bounded,
// and the time `end` at which the last lane or network card is done.
//
// Take any feasible schedule, cut kernels at will and let them move between lanes: it stays
// feasible. On a lane, encoder kernels run only while the LLM is idle, and not before the first
// gather of any encoder there has ended. So:
//   a. what must be done by the deadline D fits into the idle time of all lanes before D:
//        work(D) <= sum over lanes (shift + idle[0, D] - first gather);
//   b. what is released at R or later fits into the idle time in [R, end];
//   c. all of it fits into the idle time of the whole step.
// Idle time grows by at most one lane's worth per unit of `end` and by exactly as much per unit of
// shift, so that in c. a longer shift is never worse than a later end: the least shift + end has
// the least end of b. All of this holds for each Part alone: its kernels run in its slots on its
// lanes.
class Fluid {
 public:
  explicit Fluid(const Problem& problem) : problem_(problem) {
    for (const LlmStage& stage : problem.llm.stages) {
      capacity_.emplace_back(AllSlots(stage).compute);
    }
    lanes_ = static_cast<Ps>(capacity_.size()) * problem.lanes;
    for (const EncoderWork& encoder : problem.encoders) AddDemands(encoder);
    lost_ = LostToGathers();
  }

  // a. at least 0.
  Ps LeastShift() {
    std::sort(forward_.begin(), forward_.end(),
              [](const Demand& x, const Demand& y) { return x.time < y.time; });
    Ps work = 0, shift = 0;
    for (const Demand& demand : forward_) {
      work += demand.amount;
      if (demand.amount == 0) continue;
      shift = std::max(shift, RoundUp(work + lost_ - IdleBefore(demand.time)));
    }
    return shift;
  }

  // b. at least `end`.
  Ps LeastEnd(Ps end) {
    std::sort(backward_.begin(), backward_.end(),
              [](const Demand& x, const Demand& y) { return x.time > y.time; });
    Ps work = 0, idle = -kForever;
    for (const Demand& demand : backward_) {
      work += demand.amount;
      if (demand.amount > 0) idle = std::max(idle, IdleBefore(demand.time) + work);
    }
    if (IdleBefore(end) >= idle) return end;
    // After the LLM's own end all lanes are idle.
    Ps low = end, high = std::max(end, problem_.llm.step.value()) + RoundUp(work);
    while (high - low > 1) {
      const Ps middle = low + (high - low) / 2;
      (IdleBefore(middle) < idle ? low : high) = middle;
    }
    return high;
  }

  // c.
  Ps ShiftFor(Ps end) const {
    Ps total = 0;
    for (const Demand& demand : forward_) total += demand.amount;
    for (const Demand& demand : backward_) total += demand.amount;
    return total == 0 ? 0 : RoundUp(total + lost_ - IdleBefore(end));
  }

 private:
  void AddDemands(const EncoderWork& encoder) {
    const Ps forward = LaneTime(problem_, encoder, Direction::kForward);
    const Ps backward = LaneTime(problem_, encoder, Direction::kBackward);
    for (const std::int32_t i : encoder.micro_batches) {
      const auto at = static_cast<std::size_t>(i);
      forward_.push_back(
          {problem_.llm.forward_needed[at].value() - Least(encoder.to_llm), forward});
      backward_.push_back(
          {problem_.llm.backward_made[at].value() + Least(encoder.from_llm), backward});
    }
  }

  // Lane time before the first gather has ended, where every encoder waits for one.
  Ps LostToGathers() const {
    const auto gathers = PlaceGathers(problem_);
    Ps lost = 0;
    for (std::size_t d = 0; d < problem_.llm.stages.size(); ++d) {
      Ps first = kForever;
      for (std::size_t e = 0; e < problem_.encoders.size(); ++e) {
        const std::size_t p = d % gathers[e].size();
        first = std::min(first, FirstGathered(problem_.encoders[e], p, gathers[e][p]));
      }
      if (first < kForever) lost += first * problem_.lanes;
    }
    return lost;
  }

  // Idle lane time in [0, at] of the LLM alone.
  Ps IdleBefore(Ps at) const {
    Ps idle = 0;
    for (const Capacity& capacity : capacity_) idle += capacity.Before(at) * problem_.lanes;
    return idle;
  }

  // Lane time shared by all lanes.
  Ps RoundUp(Ps lane_time) const { return lane_time <= 0 ? 0 : (lane_time + lanes_ - 1) / lanes_; }

  const Problem& problem_;
  std::vector<Capacity> capacity_;  // by stage: all its lanes are alike
  Ps lanes_ = 0;
  std::vector<Demand> forward_, backward_;
  Ps lost_ = 0;
};

// The network card of a stage is done: the LLM's reduction, then the encoders' in a row; those of
// one encoder not before its last gradient has come from the LLM.
Ps CardsDone(const Problem& problem) {
  std::vector<Picoseconds> card_free = LlmReductionEnds(problem);
  for (const EncoderWork& encoder : problem.encoders) {
    Picoseconds last;
    for (const std::int32_t i : encoder.micro_batches) {
      const auto at = static_cast<std::size_t>(i);
      last = std::max(last, problem.llm.backward_made[at] + Picoseconds(Least(encoder.from_llm)));
    }
    std::vector<std::vector<Picoseconds>> ready;
    for (const auto& buckets : encoder.sync.reductions) ready.emplace_back(buckets.size(), last);
    PlaceReductions(encoder, ready, card_free);
  }
  return std::max_element(card_free.begin(), card_free.end())->value();
}

Ps FluidStep(const Problem& problem) {
  Fluid fluid(problem);
  const Ps end = fluid.LeastEnd(CardsDone(problem));
  const Ps shift = std::max({LeastShift(problem).value(), fluid.LeastShift(), fluid.ShiftFor(end)});
  return shift + end + problem.llm.after_reduction.value();
}

// Compute alone, wherever and in whatever order it runs: shared evenly over all lanes, or what the
// busiest stage of the LLM has without any encoder.
Ps WorkBound(const Problem& problem) {
  const auto stages = static_cast<Ps>(problem.llm.stages.size());
  Ps lane_time = 0, busiest = 0;
  for (const LlmStage& stage : problem.llm.stages) {
    lane_time += stage.compute.value() * problem.lanes;
    busiest = std::max(busiest, stage.compute.value());
  }
  for (const EncoderWork& encoder : problem.encoders) {
    const auto count = static_cast<Ps>(encoder.micro_batches.size());
    lane_time += count * (LaneTime(problem, encoder, Direction::kForward) +
                          LaneTime(problem, encoder, Direction::kBackward));
  }
  const Ps lanes = stages * problem.lanes;
  return std::max(busiest, (lane_time + lanes - 1) / lanes);
}

}  // namespace

Bounds LowerBounds(const Problem& problem) {
  const Ps alone = problem.llm.step.value();
  return {Picoseconds(std::max(alone, WorkBound(problem))),
          Picoseconds(std::max(alone, FluidStep(problem)))};
}

}  // namespace optimus::bubble
