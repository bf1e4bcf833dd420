#pragma once
// Alpa's inter-operator dynamic programme (Zheng et al., OSDI 2022, arXiv 2201.12023, section 5):
// contiguous layers to pipeline stages, so that one micro-batch after another through a pipeline
// without interleaving takes the least time,
//   T = sum of all stage latencies + (micro_batches - 1) * the largest one.
//
// Restricted to equal submeshes: a Schedule has one (dp, pp, tp) for all stages, so every stage has
// the same GPUs, and the latency of a stage does not depend on a choice of submesh. Alpa also
// searches over submeshes of different shapes.

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "schedule/partition/partition.h"

namespace optimus::partition {

struct InterOperatorProblem {
  int layers = 0;
  int stages = 0;
  std::int64_t micro_batches = 1;
  // Time of one micro-batch, forward and backward, through layers [first, last). Not negative. It
  // need not be the sum of anything.
  absl::FunctionRef<Picoseconds(int first, int last)> latency;
  // Whether the stage has memory for them: an early one keeps more micro-batches. Asked only of
  // what a partition can have: no stage is empty.
  absl::FunctionRef<bool(int stage, int first, int last)> fits;
};

// Pipelines of more layers than this are refused: every pair of boundaries is priced.
inline constexpr int kMaxInterOperatorLayers = 1024;

// The partition of the smallest T of those that fit. Ties: the smaller largest latency, then the
// partition whose boundaries come first (earlier stages hold fewer layers).
// INVALID_ARGUMENT for fewer layers than stages, or too many of them. RESOURCE_EXHAUSTED where no
// partition fits.
absl::StatusOr<Boundaries> InterOperator(const InterOperatorProblem& problem);

}  // namespace optimus::partition
