#include "schedule/pipeline/gpipe.h"

#include "base/status_macros.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {

absl::StatusOr<Order> GPipe(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(stages, 1, micro_batches));
  const auto forwards = MicroBatchesInTurn(SlotKind::kForward, micro_batches);
  const auto backwards = MicroBatchesInTurn(SlotKind::kBackward, micro_batches);
  // Every forward is warm-up.
  const auto slots = WarmUpThenAlternate(forwards, backwards, micro_batches);
  return Order{stages, 1, micro_batches, std::vector<std::vector<Slot>>(stages, slots)};
}

}  // namespace optimus::pipeline
