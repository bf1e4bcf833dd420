#pragma once
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {
// All forwards, then all backwards (GPipe, Huang et al. 2019). INVALID_ARGUMENT for counts below 1.
absl::StatusOr<Order> GPipe(int stages, int micro_batches);
}  // namespace optimus::pipeline
