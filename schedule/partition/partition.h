#pragma once
// Which layers go to which virtual stage. A partition of n layers over k virtual stages is k + 1
// boundaries: virtual stage i holds layers [b[i], b[i+1]).

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"

namespace optimus::partition {

using Boundaries = std::vector<int>;

// Equal counts. Where `layers` does not divide: INVALID_ARGUMENT unless `allow_uneven`, then the
// first (layers mod virtual_stages) stages hold one layer more. Every layer once, no stage empty.
absl::StatusOr<Boundaries> EqualLayers(int layers, int virtual_stages, bool allow_uneven);

// Explicit counts per virtual stage ("4,6,6,6,6,6,6,8"), each at least 1; must sum to `layers`.
absl::StatusOr<Boundaries> FromCounts(const std::vector<int>& counts, int layers);

// The paper's dynamic programme F(l, m) = min_j max(F(j, m-1), sum of t over (j, l]): contiguous,
// no stage empty, smallest possible maximum. Ties, as a named rule (decision 12): the last boundary
// is the earliest j that attains F(l, m); the stages before it are the balanced partition of layers
// [0, j) over m - 1 stages, by the same rule. So ten equal layers on four stages are 2, 2, 3, 3.
// INVALID_ARGUMENT for fewer layers than stages and for a negative time.
absl::StatusOr<Boundaries> Balanced(const std::vector<Picoseconds>& layer_times,
                                    int virtual_stages);

// One virtual stage of a layout string: what it holds, in order.
struct LayoutStage {
  bool embedding = false, loss = false;
  int encoder_layers = 0;  // 'v'
  bool projector = false;  // 'p'
  int decoder_layers = 0;  // 't'
};
// Megatron-LM's --pipeline-model-parallel-layout: stages separated by '|', E embedding, t decoder
// layer, L loss, X*n and (..)*n repetition (not nested), ',' and spaces cosmetic; extended by v
// (encoder layer) and p (projector). One E before the first t, one L at the end; v's before p, p
// before the first t. "Et*3|(tt|)*4tL": the embedding and 3 decoder layers, 4 stages of 2, then 1
// layer and the loss. INVALID_ARGUMENT points at the offending character. UNIMPLEMENTED: m
// (multi-token prediction layer) and a stage that holds nothing, which Megatron-LM knows and we do
// not.
absl::StatusOr<std::vector<LayoutStage>> ParseLayout(const std::string& layout);

}  // namespace optimus::partition
