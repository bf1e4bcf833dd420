#pragma once
// The bubble schedulers. Both give every encoder kernel a place; neither changes the LLM's own
// order or durations.

#include <cstdint>

#include "absl/status/statusor.h"
#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"

namespace optimus::bubble {

struct SearchOptions {
  bool exhaustive = false;             // all splits, instead of local search
  std::vector<planner::Split> splits;  // by encoder, to be used as they are; empty: searched
  // By encoder: what the memory of its GPUs allows a pipeline to hold; empty: any number.
  std::vector<std::int32_t> most_micro_batches;
  // ScheduleList only: also runs SchedulePaper, returns it where it is faster, and takes the coarse
  // figures from it. Without: they are those of the list itself.
  bool paper_fallback = true;
};

// The paper's Algorithm 2, as the calibration notes make it precise. Encoders are scheduled one
// after the other; each sees what is left of the slots. The local search over splits ends early
// where there are far more than a hundred micro-batches. INVALID_ARGUMENT for a problem that is not
// well formed, and where `splits` do not suit it.
absl::StatusOr<Result> SchedulePaper(const Problem& problem, const SearchOptions& options);

// Beyond the paper: chains (parts of a micro-batch) in deadline order, inner and outer bubbles
// alike, collectives of one chain under compute of another.
absl::StatusOr<Result> ScheduleList(const Problem& problem, const SearchOptions& options);

// The whole result again, from the times in `result` alone, as a user of the paper would check it:
// INVALID_ARGUMENT names the encoder, pipeline, micro-batch and op that breaks a rule.
absl::Status Verify(const Problem& problem, const Result& result);

Bounds LowerBounds(const Problem& problem);

// INVALID_ARGUMENT names what is not well formed: shapes, orders, negative times.
absl::Status CheckProblem(const Problem& problem);

}  // namespace optimus::bubble
