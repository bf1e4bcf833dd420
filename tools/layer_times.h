#pragma once
// Times of single layers, as the paper's section 2 gives them.

#include "absl/status/statusor.h"
#include "base/units.h"
#include "hw_profiles/profile.h"
#include "schedule/step/step.h"

namespace optimus::tools {

struct LayerTimes {
  // One layer of the first encoder on one slice of a micro-batch, kernels and exposed collectives,
  // without recomputation.
  Picoseconds encoder_forward, encoder_backward;
  // The slowest tensor-parallel collective of an LLM layer's forward, micro-batch by micro-batch.
  Picoseconds llm_collective;
};

// FAILED_PRECONDITION for an experiment without an encoder.
absl::StatusOr<LayerTimes> MakeLayerTimes(const step::Experiment& experiment,
                                          const hw::ProfileCostModel& costs);

}  // namespace optimus::tools
