#include "schedule/pipeline/one_f_one_b.h"

#include <algorithm>

#include "base/status_macros.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {

absl::StatusOr<Order> OneForwardOneBackward(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(stages, 1, micro_batches));
  const auto forwards = MicroBatchesInTurn(SlotKind::kForward, micro_batches);
  const auto backwards = MicroBatchesInTurn(SlotKind::kBackward, micro_batches);
  Order order{stages, 1, micro_batches, {}};
  for (int s = 0; s < stages; ++s) {
    const int warm_up = std::min(stages - 1 - s, micro_batches);
    order.slots.push_back(WarmUpThenAlternate(forwards, backwards, warm_up));
  }
  return order;
}

}  // namespace optimus::pipeline
