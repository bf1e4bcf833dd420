#include "schedule/step/make_order.h"

#include <string>

#include "schedule/pipeline/gpipe.h"
#include "schedule/pipeline/interleaved.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/step/check.h"

namespace optimus::step {
namespace {

// The pipeline's errors begin with the name of its own parameter; the user knows the field that it
// was made from.
absl::Status InField(const absl::Status& status) {
  const std::string message(status.message());
  std::string prefix = "plan.schedule: ";
  if (message.rfind("micro_batch_group: ", 0) == 0) prefix = "plan.";
  if (message.rfind("micro-batches: ", 0) == 0) prefix = "batch.global_batch: ";
  return absl::Status(status.code(), prefix + message);
}

}  // namespace

absl::StatusOr<pipeline::Order> MakeOrder(const Experiment& experiment, pipeline::WarmUp warm_up) {
  const Plan& plan = experiment.plan();
  const int micro_batches = MicroBatches(experiment);
  absl::StatusOr<pipeline::Order> order;
  switch (plan.schedule()) {
    case Plan::GPIPE:
      order = pipeline::GPipe(plan.pipeline_parallel(), micro_batches);
      break;
    case Plan::ONE_F_ONE_B:
      order = pipeline::OneForwardOneBackward(plan.pipeline_parallel(), micro_batches);
      break;
    default:
      order = pipeline::Interleaved({.stages = plan.pipeline_parallel(),
                                     .chunks = plan.model_chunks(),
                                     .micro_batches = micro_batches,
                                     .group_size = plan.micro_batch_group(),
                                     .warm_up = warm_up});
  }
  if (order.ok()) return order;
  return InField(order.status());
}

}  // namespace optimus::step
