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

std::string ToString(const Slot& slot) {
  return absl::StrCat(ToString(slot.kind), " of chunk ", slot.chunk, ", micro-batch ",
                      slot.micro_batch);
}

}  // namespace optimus::pipeline
