#include "schedule/pipeline/zb_h1.h"

#include "base/status_macros.h"
#include "schedule/pipeline/delayed_weights.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {

absl::StatusOr<Order> ZbH1(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(stages, 1, micro_batches));
  Order order{stages, 1, micro_batches, {}};
  order.slots.reserve(stages);
  for (int s = 0; s < stages; ++s) {
    order.slots.push_back(OneFOneBWithDelayedWeights(micro_batches, stages - 1 - s, s));
  }
  return order;
}

}  // namespace optimus::pipeline
