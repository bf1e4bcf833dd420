#pragma once
// List scheduling of forwards, data and weight gradients under a memory limit: time goes on, and
// whenever a stage is free, a rule picks what it runs next.
//
// The rule is that of Qi et al. (arXiv 2401.10241, section 3.1) in event order. A data gradient
// goes first, for it frees memory and feeds the stages before; a forward next, while memory allows;
// weight gradients fill what is left, and whatever the stage holds too much of. Where something
// that is better is about to arrive, a stage may wait for it; for how long is what the policy says
// and the search (zb_search.h) varies.

#include <array>
#include <cstdint>
#include <optional>

#include "schedule/pipeline/order.h"
#include "schedule/pipeline/zb_path.h"
#include "schedule/pipeline/zb_problem.h"

namespace optimus::pipeline {

// The delays that are tried.
inline constexpr std::array<double, 5> kZbDelays = {0.0, 0.25, 0.5, 0.75, 1.0};

struct ZbPolicy {
  // A forward, a weight gradient starts if it delays a data gradient that is about to arrive by at
  // most this share of its own time. 0: never delays one; 1: never waits.
  double forward_delay = 0;
  double weight_delay = 0;
  // Where a forward and a data gradient are ready: in turn; else the data gradient.
  bool alternate = false;
  // What is about to arrive: as soon as the micro-batch has begun, from the time it needs for the
  // rest of its way; else only what is being computed next door.
  bool look_far = false;
  // Weight gradients wait for forwards, too.
  bool weights_wait_for_forwards = false;
  // Which chunk's data gradient goes first where several are ready: the later on the micro-batch's
  // way, which is the earlier chunk; else the later chunk. (Of forwards always the later chunk: its
  // micro-batch is nearer to freeing memory.)
  bool late_gradients_first = true;
  // Two chunks in a V: the first holds no more of the memory than it does in the textbook order
  // (zb_v.h), (2 p - 1 - s) / 2 p of it on stage s; else all but one micro-batch.
  bool split_memory = false;
};

// An order within the memory limit; never deadlocks. Ties go to the lower stage. `problem` passes
// CheckZbProblem, and `path` is its path.
Order ListSchedule(const ZbProblem& problem, const MicroBatchPath& path, const ZbPolicy& policy);

// By index in kZbDelays, one bit each: which other delays give the same order, everything else in
// the policy being the same. Any of `forward` goes with any of `weight`.
struct SameDelays {
  std::uint32_t forward = (1U << kZbDelays.size()) - 1;
  std::uint32_t weight = (1U << kZbDelays.size()) - 1;
};

struct ListScoreResult {
  // What ZbReplay says of ListSchedule's order. Nullopt where the first part of it is above `most`:
  // then it was given up as soon as the idle time of a stage said so.
  std::optional<ZbScore> score;
  SameDelays same;  // of the order, or of what there was of it
};

// The score of a policy without its order.
ListScoreResult ListScore(const ZbProblem& problem, const MicroBatchPath& path,
                          const ZbPolicy& policy, Picoseconds most);

}  // namespace optimus::pipeline
