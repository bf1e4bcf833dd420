#pragma once
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {
// 1F1B / PipeDream-flush (Narayanan et al., SC 2021, Figure 4 top).
absl::StatusOr<Order> OneForwardOneBackward(int stages, int micro_batches);
}  // namespace optimus::pipeline
