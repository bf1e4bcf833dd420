#pragma once
// What the schedules of the 1F1B family share.

#include <vector>

#include "absl/status/status.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// INVALID_ARGUMENT for counts below 1, or a step of more slots than memory should hold.
absl::Status CheckCounts(int stages, int chunks, int micro_batches);

// One stage's slots: `warm_up` forwards, then a forward and a backward in turn while there are
// forwards, then the backwards that are left (cool-down). `forwards` and `backwards` have one size,
// and 0 <= warm_up <= that size.
std::vector<Slot> WarmUpThenAlternate(const std::vector<Slot>& forwards,
                                      const std::vector<Slot>& backwards, int warm_up);

// `count` slots of chunk 0, micro-batches 0, 1, ...
std::vector<Slot> MicroBatchesInTurn(SlotKind kind, int count);

}  // namespace optimus::pipeline
