#include "schedule/pipeline/delayed_weights.h"

#include <algorithm>
#include <cstddef>

namespace optimus::pipeline {

std::vector<Slot> OneFOneBWithDelayedWeights(int micro_batches, int warm_up, int delay) {
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>(micro_batches) * 3);
  int forwards = 0;
  while (forwards < std::min(warm_up, micro_batches)) {
    slots.push_back({SlotKind::kForward, 0, forwards++});
  }
  for (int i = 0; i < micro_batches; ++i) {
    if (forwards < micro_batches) {
      slots.push_back({SlotKind::kForward, 0, forwards++});
    }
    slots.push_back({SlotKind::kBackwardData, 0, i});
    if (i >= delay) {
      slots.push_back({SlotKind::kBackwardWeight, 0, i - delay});
    }
  }
  for (int i = std::max(0, micro_batches - delay); i < micro_batches; ++i) {
    slots.push_back({SlotKind::kBackwardWeight, 0, i});
  }
  return slots;
}

}  // namespace optimus::pipeline
