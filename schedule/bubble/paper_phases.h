#pragma once
// The two phases of the paper's Algorithm 2 for one split of the micro-batches: which of them run
// in line before (after) the LLM, and which move into slots between the LLM's operations. See
// "The scheduler, precisely" in the calibration notes.

#include <cstdint>
#include <vector>

#include "schedule/bubble/paper_pipeline.h"
#include "schedule/planner/splits.h"

namespace optimus::bubble::paper {

using Models = std::vector<PipelineModel*>;  // by encoder pipeline; alike pipelines share one

struct ForwardPlan {
  std::int64_t shift = 0;          // the LLM starts so much later
  std::vector<std::size_t> moved;  // by pipeline: how many of its last micro-batches are in slots
};

// One micro-batch at the LLM. `order`: in its pipeline, those in line first, then those in slots in
// the order in which they were moved.
struct Arrival {
  std::int64_t at = 0;
  std::int32_t pipeline = 0;
  std::int32_t order = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const Arrival&, const Arrival&) = default;
};

class ForwardPhase {
 public:
  // needed: when the LLM needs its micro-batches, never falling. The shift is never below `floor`.
  ForwardPhase(const Models& models, std::vector<std::int64_t> needed, std::int64_t floor,
               bool moves);
  const ForwardPlan& Plan(const planner::Split& split);
  // Of the last plan, in the order in which they arrive: the i-th is the LLM's i-th.
  const std::vector<Arrival>& Arrivals(const planner::Split& split);

 private:
  struct Critical {
    std::int64_t shift = 0;
    std::int32_t pipeline = -1;  // that needs it; -1: none does
  };
  // The least shift with which everything in line ends before the LLM starts on its lanes and the
  // i-th micro-batch is there when the LLM needs it, for all i.
  Critical LeastShift(const planner::Split& split) const;
  void AddDependencies(Critical& critical) const;
  // The last micro-batch that the pipeline has in line, into slots and back; false: no place.
  bool Move(const planner::Split& split, std::size_t pipeline);
  void MoveBack(const planner::Split& split, std::size_t pipeline);
  Arrival InLine(const planner::Split& split, std::size_t pipeline) const;
  Arrival InSlots(std::size_t pipeline) const;

  const Models& models_;
  std::vector<std::int64_t> needed_;
  std::int64_t floor_;
  bool moves_;
  ForwardPlan plan_;
  std::vector<Arrival> line_;   // sorted; times of the real step
  std::vector<Arrival> slots_;  // sorted; times of the LLM alone
  std::vector<Arrival> arrivals_;
};

class BackwardPhase {
 public:
  using Sequence = std::vector<std::int64_t>;  // when the gradients are there, ascending

  // The end of all reductions is never below `floor`.
  BackwardPhase(const Models& models, std::int64_t floor, bool moves);
  // The end of all reductions, times of the LLM alone. Anything that is at least `limit` where the
  // end is at least that.
  std::int64_t End(const std::vector<Sequence>& sequences,
                   const std::vector<std::size_t>& forward_moved, std::int64_t limit);
  // Of the last End(): how many of each pipeline's first gradients are worked on in slots.
  std::size_t Moved(std::size_t pipeline) const { return states_[pipeline].moved; }

 private:
  struct State {
    std::int32_t node = -1;
    std::size_t moved = 0;
    std::int64_t end = kNever;
  };
  // False where nothing is left to move, it finds no place, or its pipeline would not end earlier.
  bool Move(std::size_t pipeline, const Sequence& sequence, std::size_t forward_moved);
  // The first pipeline that cannot get below `limit`; -1: all can, and are.
  std::int32_t FirstStuck(const std::vector<Sequence>& sequences,
                          const std::vector<std::size_t>& forward_moved, std::int64_t limit);

  const Models& models_;
  std::int64_t floor_;
  bool moves_;
  std::vector<State> states_;
  std::size_t stuck_last_ = 0;  // likely to be stuck again
};

}  // namespace optimus::bubble::paper
