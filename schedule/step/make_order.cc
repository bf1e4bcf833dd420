#include "schedule/step/make_order.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "schedule/pipeline/gpipe.h"
#include "schedule/pipeline/interleaved.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/step/check.h"

namespace optimus::step {

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
  return absl::Status(order.status().code(),
                      absl::StrCat("plan.schedule: ", std::string(order.status().message())));
}

}  // namespace optimus::step
