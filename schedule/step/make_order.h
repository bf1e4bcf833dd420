#pragma once
// The pipeline schedule of a plan.

#include <functional>

#include "absl/status/statusor.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/placing.h"

namespace optimus::step {

// What ZB_1P, ZB_2P and ZB_V are made from.
struct OrderTimes {
  pipeline::SlotTimes times;
  double weight_share = 1;  // WeightShare
};

// `experiment` must have passed CheckExperiment. `times` is called for the schedules that need it.
// INVALID_ARGUMENT "field: ..." where the number of micro-batches or stages does not suit the
// schedule (batch.global_batch, plan.pipeline_parallel) or its groups (plan.micro_batch_group), and
// for a plan.schedule_file that cannot be read or has another number of stages, model chunks or
// micro-batches.
absl::StatusOr<pipeline::Order> MakeOrder(const Experiment& experiment, pipeline::WarmUp warm_up,
                                          const std::function<OrderTimes()>& times);

// The errors of MakeOrder, as far as they need no times.
absl::Status CheckOrder(const Experiment& experiment);

// How the schedule places its virtual stages. Errors as MakeOrder, of plan.schedule_file.
absl::StatusOr<Placing> PlacingOf(const Experiment& experiment);

}  // namespace optimus::step
