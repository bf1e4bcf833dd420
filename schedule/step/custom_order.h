#pragma once
// The order of schedule CUSTOM, from plan.schedule_file.

#include <string>

#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::step {

// INVALID_ARGUMENT or NOT_FOUND "plan.schedule_file: PATH: ..." for a file that cannot be read;
// also naming the field of the plan that does not suit the file: pipeline_parallel, model_chunks,
// the batch, or profiled.weight_ms where the file runs weight gradients apart.
absl::StatusOr<pipeline::Order> ReadCustomOrder(const Experiment& experiment);

// One sentence on what plan.schedule_file says of communication and is not used; empty where it
// says nothing of it. Errors of reading as above.
absl::StatusOr<std::string> CommunicationLeftOut(const Plan& plan);

}  // namespace optimus::step
