#pragma once
// Checks that an order is a training step, stage by stage. It does not look across stages: an order
// can pass and still deadlock (order_span.h finds that).

#include "absl/status/status.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// Every stage runs every (chunk, micro-batch) forward exactly once and after it backward exactly
// once: whole, or data gradients and then weight gradients. INVALID_ARGUMENT naming stage and slot.
absl::Status ValidateOrder(const Order& order);

}  // namespace optimus::pipeline
