#pragma once
// The work of one encoder as flat arrays, and the loop that gives every op of one micro-batch its
// time. Where an op may run is the timer's business: in line (coarse) or in idle slots (fine).
//
// Ops of one resource keep their order. So of the dependencies on the op's own resource none has to
// be looked at, and of those on the other resource only the latest.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/bubble/problem.h"
#include "schedule/bubble/slots.h"

namespace optimus::bubble::paper {

// Earlier than everything; sums with durations do not overflow.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 4;

struct FlatOp {
  std::int64_t duration = 0;
  std::uint32_t dependency = 0;  // index into the ends, 0: none
  std::uint32_t part = 0;        // index into the arrivals, 0: none
  std::uint32_t gather = 0;      // index into the ends of gathers, 0: none
  std::uint32_t resource = 0;
};

// The step cannot end earlier than `after` after this op: reductions wait for it.
struct TailOp {
  std::uint32_t end = 0;  // index into the ends
  std::int64_t after = 0;
};

struct FlatStage {
  std::vector<FlatOp> ops;
  std::vector<std::uint32_t> outputs;  // indices into the ends
  std::vector<TailOp> tail;            // backward only
  std::size_t input_parts = 0;
};

// One direction, stages in the order in which a micro-batch passes them.
using Flow = std::vector<FlatStage>;

Flow ForwardFlow(const EncoderWork& encoder);
Flow BackwardFlow(const EncoderWork& encoder);

// By encoder stage and resource: the shortest op in any direction. Slots below hold nothing.
std::vector<std::array<std::int64_t, 2>> ShortestOps(const EncoderWork& encoder);

// Both resources of a lane work in order, from `free` on.
struct InLine {
  std::array<std::int64_t, 2> free{};
  bool Place(std::uint32_t resource, std::int64_t ready, std::int64_t duration, std::int64_t& end) {
    end = free[resource] = std::max(free[resource], ready) + duration;
    return true;
  }
};

// Free slots of every encoder stage of a pipeline, by resource.
using SlotState = std::vector<std::array<Slots, 2>>;

// First fit over the slots of one resource. Writes what is left to a second list, so that a failed
// placement changes nothing.
class SlotWalker {
 public:
  // Slots that end before `from` are dropped from what is left if `forget`. Remainders shorter than
  // `shortest` are of no use and dropped as well.
  void Begin(const Slots& slots, Slots& left, std::int64_t from, std::int64_t shortest,
             bool forget);
  bool Place(std::int64_t ready, std::int64_t duration, std::int64_t& end) {
    for (; at_ != last_; Next()) {
      const std::int64_t start = std::max(start_, ready);
      if (start + duration > at_->end.value()) continue;
      Keep(start);
      end = start_ = start + duration;
      return true;
    }
    return false;
  }
  void Finish();

 private:
  void Keep(std::int64_t end) {
    if (end > start_ && end - start_ >= shortest_) {
      left_->push_back({Picoseconds(start_), Picoseconds(end)});
    }
  }
  void Next() {
    Keep(at_->end.value());
    ++at_;
    if (at_ != last_) start_ = at_->start.value();
  }

  const Interval* at_ = nullptr;
  const Interval* last_ = nullptr;
  std::int64_t start_ = 0;  // what is left of *at_ starts here
  std::int64_t shortest_ = 0;
  Slots* left_ = nullptr;
};

struct InSlots {
  std::array<SlotWalker, 2> of;
  bool Place(std::uint32_t resource, std::int64_t ready, std::int64_t duration, std::int64_t& end) {
    return of[resource].Place(ready, duration, end);
  }
};

// Times of one micro-batch; memory is used again.
struct UnitTimes {
  std::vector<std::vector<std::int64_t>> ends;  // by stage in order of the flow: kNever, then by op
  std::vector<std::int64_t> arrivals;           // kNever, then by part of the stage's input
  std::int64_t output = 0;                      // the last stage's output is complete
  std::int64_t tail = 0;                        // max over ops of end + what comes after it
};

// By stage in order of the flow: kNever, then the ends of its gathers.
using GatherEnds = std::vector<std::vector<std::int64_t>>;

template <class Timer>
bool RunStage(const FlatStage& stage, const std::vector<std::int64_t>& gathers, std::int64_t from,
              Timer& timer, const std::int64_t* arrivals, std::int64_t* ends) {
  ends[0] = kNever;
  const FlatOp* op = stage.ops.data();
  for (std::size_t i = 1; i <= stage.ops.size(); ++i, ++op) {
    const std::int64_t ready = std::max(std::max(from, ends[op->dependency]),
                                        std::max(arrivals[op->part], gathers[op->gather]));
    if (!timer.Place(op->resource, ready, op->duration, ends[i])) return false;
  }
  return true;
}

// What leaves a stage arrives at the next. A stage without ops passes on what it got.
void PassOn(const FlatStage& stage, const std::vector<std::int64_t>& ends, std::size_t next_parts,
            std::int64_t hop, UnitTimes& times);

// Nothing of the micro-batch starts before `from`; hops[q]: from stage q to q + 1 of the flow.
// False where an op found no place; `timers` are then of no use.
template <class Timer>
bool RunUnit(const Flow& flow, const GatherEnds& gathers, const std::vector<std::int64_t>& hops,
             std::int64_t from, std::vector<Timer>& timers, UnitTimes& times) {
  times.ends.resize(flow.size());
  times.arrivals.assign(1 + flow[0].input_parts, from);
  times.arrivals[0] = kNever;
  times.output = from;
  times.tail = kNever;
  for (std::size_t q = 0; q < flow.size(); ++q) {
    const FlatStage& stage = flow[q];
    times.ends[q].resize(stage.ops.size() + 1);
    if (!RunStage(stage, gathers[q], from, timers[q], times.arrivals.data(),
                  times.ends[q].data())) {
      return false;
    }
    for (const TailOp& op : stage.tail) {
      times.tail = std::max(times.tail, times.ends[q][op.end] + op.after);
    }
    const bool last = q + 1 == flow.size();
    PassOn(stage, times.ends[q], last ? 0 : flow[q + 1].input_parts, last ? 0 : hops[q], times);
  }
  return true;
}

}  // namespace optimus::bubble::paper
