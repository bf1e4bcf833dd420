#pragma once
// The pipeline schedule of a plan.

#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::step {

// `experiment` must have passed CheckExperiment. INVALID_ARGUMENT "field: ..." where the
// number of micro-batches does not suit the schedule (batch.global_batch) or its groups
// (plan.micro_batch_group).
absl::StatusOr<pipeline::Order> MakeOrder(const Experiment& experiment, pipeline::WarmUp warm_up);

}  // namespace optimus::step
