#pragma once
// Checks that an order is a training step, stage by stage. It does not look across stages: an order
// can pass and still deadlock (order_span.h finds that).

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// The first thing that is wrong with the slots of an order.
struct OrderProblem {
  std::size_t stage = 0;
  std::optional<std::size_t> index;  // in the stage's slots; nullopt: the slot is missing
  Slot slot;                         // which slot that is, or which is missing
  const char* what = "";             // "runs twice"
};

// For an order with positive counts, slots of every stage, and a placement that fits them.
std::optional<OrderProblem> FindProblem(const Order& order);

// Every stage runs every (chunk, micro-batch) forward exactly once and after it backward exactly
// once: whole, or data gradients and then weight gradients. INVALID_ARGUMENT naming stage and slot.
absl::Status ValidateOrder(const Order& order);

}  // namespace optimus::pipeline
