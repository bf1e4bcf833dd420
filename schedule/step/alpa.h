#pragma once
// The layout of strategy ALPA: Alpa's inter-operator dynamic programme (schedule/partition) over
// the layers of an experiment.

#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/stack.h"

namespace optimus::step {

// Layers to the plan's stages so that the sum of stage latencies + (micro-batches - 1) * the
// largest one is least, among the splits where every stage keeps within `capacity`
// (OneFOneBStageMemory). The latency of a stage is the time of its layers, forward and backward,
// with their tensor-parallel collectives (`layer_times`, as for BALANCED); messages between stages
// are not counted, as in Alpa. INVALID_ARGUMENT "plan.layout: ..." where no split fits.
absl::StatusOr<ItemRanges> LayOutInterOperator(const Experiment& experiment, const Stack& stack,
                                               const std::vector<Picoseconds>& layer_times,
                                               Bytes capacity);

}  // namespace optimus::step
