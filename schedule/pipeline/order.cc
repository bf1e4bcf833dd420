#include "schedule/pipeline/order.h"

#include "absl/strings/str_cat.h"

namespace optimus::pipeline {

const char* ToString(SlotKind kind) {
  switch (kind) {
    case SlotKind::kForward:
      return "forward";
    case SlotKind::kBackward:
      return "backward";
    case SlotKind::kBackwardData:
      return "backward (data)";
    case SlotKind::kBackwardWeight:
      return "backward (weight)";
  }
  return "unknown";
}

MicroBatchRange MicroBatchesOf(const Order& order, int chunk) {
  if (order.placement != Placement::kBidirectional) return {0, order.micro_batches};
  const std::int32_t half = order.micro_batches / 2;
  return chunk == 0 ? MicroBatchRange{0, half} : MicroBatchRange{half, order.micro_batches};
}

std::string ToString(const Slot& slot) {
  return absl::StrCat(ToString(slot.kind), " of chunk ", slot.chunk, ", micro-batch ",
                      slot.micro_batch);
}

}  // namespace optimus::pipeline
