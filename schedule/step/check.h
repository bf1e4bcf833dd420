#pragma once
// What can be said about an experiment without a model or a profile: every field alone, and the
// arithmetic between them.

#include <cstdint>

#include "absl/status/status.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::step {

// Writes the values that 0 stands for, so that nobody downstream has to know them.
void FillDefaults(Experiment& experiment);

// INVALID_ARGUMENT "field: what is wrong; hint". `experiment` must have its defaults filled in.
absl::Status CheckExperiment(const Experiment& experiment);

// Micro-batches of one pipeline in one step: global_batch / (data_parallel * micro_batch).
std::int32_t MicroBatches(const Experiment& experiment);

}  // namespace optimus::step
