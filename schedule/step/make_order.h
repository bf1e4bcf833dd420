#pragma once
// The pipeline schedule of a plan.

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/placing.h"
#include "schedule/step/stage_times.h"

namespace optimus::step {

// What stages keep of a micro-batch.
struct Kept {
  double weight_share = 1;                     // WeightShare
  std::vector<MicroBatchBytes> by_stage = {};  // empty for profiled stages
};

// What ZB_1P, ZB_2P and ZB_V are made from.
struct OrderTimes {
  pipeline::SlotTimes times;
  Kept kept;
};

// `experiment` must have passed CheckExperiment. `times` is called for the schedules that need it.
// INVALID_ARGUMENT "field: ..." where the number of micro-batches or stages does not suit the
// schedule (batch.global_batch, plan.pipeline_parallel) or its groups (plan.micro_batch_group), for
// a plan.activation_limit_gib under which no micro-batch fits, naming the least that would do, and
// for a plan.schedule_file that cannot be read or has another number of stages, model chunks or
// micro-batches.
absl::StatusOr<pipeline::Order> MakeOrder(const Experiment& experiment, pipeline::WarmUp warm_up,
                                          const std::function<OrderTimes()>& times);

// The errors of MakeOrder, as far as they need no times.
absl::Status CheckOrder(const Experiment& experiment);

// How the schedule places its virtual stages. Errors as MakeOrder, of plan.schedule_file.
absl::StatusOr<Placing> PlacingOf(const Experiment& experiment);

}  // namespace optimus::step
