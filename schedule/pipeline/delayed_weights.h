#pragma once
// What the handcrafted zero-bubble schedules share: 1F1B whose weight gradients come late.

#include <vector>

#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// One stage's slots: `warm_up` forwards, then forward and data gradient in turn. The weight
// gradient of micro-batch i follows the data gradient of micro-batch i + delay; the last `delay` of
// them end the stage. Both counts may be larger than `micro_batches`.
std::vector<Slot> OneFOneBWithDelayedWeights(int micro_batches, int warm_up, int delay);

}  // namespace optimus::pipeline
