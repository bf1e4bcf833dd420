#pragma once
// Where a source does not say how a global batch was cut: the cut that the simulator finds fastest,
// as whoever tunes a job would take it.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "schedule/step/experiment.pb.h"
#include "validation/published/figure.h"
#include "validation/published/row.h"
#include "validation/published/simulator.h"

namespace optimus::validation {

struct Cut {
  Picoseconds step;
  int micro_batch = 0, chunks = 0;
  int simulated = 0;  // cuts that fit into memory
  int too_large = 0;  // and those that do not
  std::string Text() const;
};

// The step of a row whose cut was searched.
RowResult StepOf(const Cut& cut, double measured_s);

// Divisors of n, ascending; of n = 0 none.
std::vector<int> Divisors(int n);

// Of the columns layers and pp: model chunks that divide the layers of a stage, ascending; 1 alone
// without a pipeline. INVALID_ARGUMENT "path:line: column pp: ..." where the stages do not get the
// same.
absl::StatusOr<std::vector<int>> ChunksOf(const Row& row);

// Tries every divisor of the samples of a pipeline as micro-batch size, with each of `chunks` as
// model chunks (1: 1F1B, more: interleaved, which needs a multiple of pipeline_parallel
// micro-batches). The first of equally fast cuts is kept, small micro-batches first. An error where
// nothing fits names the smallest size. `experiment`: everything else.
absl::StatusOr<Cut> FastestCut(const step::Experiment& experiment, const std::vector<int>& chunks,
                               Simulator& simulator);

}  // namespace optimus::validation
