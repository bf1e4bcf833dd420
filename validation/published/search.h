#pragma once
// Where a source does not say how a global batch was cut: the cut that the simulator finds fastest,
// as whoever tunes a job would take it.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "schedule/step/experiment.pb.h"
#include "validation/published/simulator.h"

namespace optimus::validation {

struct Cut {
  Picoseconds step;
  int micro_batch = 0, chunks = 0;
  int simulated = 0;  // cuts that fit into memory
  int too_large = 0;  // and those that do not
  std::string Text() const;
};

// Divisors of n, ascending; of n = 0 none.
std::vector<int> Divisors(int n);

// Tries every divisor of the samples of a pipeline as micro-batch size, with each of `chunks` as
// model chunks (1: 1F1B, more: interleaved, which needs a multiple of pipeline_parallel
// micro-batches). The first of equally fast cuts is kept, small micro-batches first. An error where
// nothing fits names the smallest size. `experiment`: everything else.
absl::StatusOr<Cut> FastestCut(const step::Experiment& experiment, const std::vector<int>& chunks,
                               Simulator& simulator);

}  // namespace optimus::validation
