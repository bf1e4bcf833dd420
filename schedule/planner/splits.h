#pragma once
// Everywhere: micro_batches >= 0, pipelines >= 1.
//
// How the micro-batches of an LLM pipeline are split over its encoder pipelines: a composition of
// `micro_batches` into `pipelines` parts, and the search for the best one.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace optimus::planner {

using Split = std::vector<std::int32_t>;  // by encoder pipeline; sums to the micro-batches

// Parts differ by one at most, larger parts first. Fewer micro-batches than pipelines: the last
// pipelines get none (decision 13 of the calibration notes).
Split BalancedSplit(std::int32_t micro_batches, std::int32_t pipelines);

// For a split that a user wrote: one part, not negative, for every pipeline. INVALID_ARGUMENT says
// how many there must be and what they must sum to.
absl::Status ValidateSplit(const Split& split, std::int32_t micro_batches, std::int32_t pipelines);

// Number of compositions with parts of at least one: C(micro_batches - 1, pipelines - 1); saturates
// at the largest int64. With fewer micro-batches than pipelines parts may be zero:
// C(micro_batches + pipelines - 1, pipelines - 1).
std::int64_t CountSplits(std::int32_t micro_batches, std::int32_t pipelines);

// Calls `visit` for each of those, in lexicographic order, until it returns false.
void ForEachSplit(std::int32_t micro_batches, std::int32_t pipelines,
                  absl::FunctionRef<bool(const Split&)> visit);

// Cost of a split, in any unit that orders; smaller is better.
using SplitCost = absl::FunctionRef<std::int64_t(const Split&)>;

struct SplitSearch {
  Split split;
  std::int64_t cost = 0;
  std::int64_t evaluated = 0;  // calls of the cost function
};

// From the balanced split, moves one micro-batch from one pipeline to another as long as that
// lowers the cost: of all such moves the best one, ties to the first by (from, to). Never calls the
// cost twice for one split, and not more than `most` times: then the best split so far is returned.
SplitSearch LocalSearch(std::int32_t micro_batches, std::int32_t pipelines, SplitCost cost,
                        std::int64_t most = std::numeric_limits<std::int64_t>::max());

// The best of all; ties to the lexicographically first. The oracle for LocalSearch.
SplitSearch ExhaustiveSearch(std::int32_t micro_batches, std::int32_t pipelines, SplitCost cost);

}  // namespace optimus::planner
