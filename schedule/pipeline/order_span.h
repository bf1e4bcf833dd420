#pragma once
// When every slot of an order runs, by the plain recurrence: a slot starts when its stage is free
// and what it needs has arrived. The slow, obvious twin of the simulator.
//
// Forward of virtual stage k (placement.h) needs forward of k - 1; backward of k needs its own
// forward and backward of k + 1. Each needed result from another stage arrives `communication`
// after it was made; sends are asynchronous and never wait for each other. A result of the same
// stage (one stage, or the turn of a V) is there at once. A forward that is `with_next` and its
// backward start together, when both have what they need, and end together.

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

struct SlotTimes {
  // By stage and chunk.
  std::vector<std::vector<Picoseconds>> forward;
  std::vector<std::vector<Picoseconds>> backward_data;
  std::vector<std::vector<Picoseconds>> backward_weight;
  Picoseconds communication;
  // A forward and a backward that share the stage; empty: as long as one after the other.
  std::vector<std::vector<Picoseconds>> together = {};  // by stage and chunk of the forward
  // A whole backward; empty: as long as its data and weight parts.
  std::vector<std::vector<Picoseconds>> backward = {};
};

// INVALID_ARGUMENT for times of another shape than `order` or below 0. Looks at no slots.
absl::Status CheckTimes(const Order& order, const SlotTimes& times);

// The same times for every stage and chunk of `order`.
SlotTimes UniformTimes(const Order& order, Picoseconds forward, Picoseconds backward_data,
                       Picoseconds backward_weight, Picoseconds communication);

struct SlotInterval {
  Picoseconds start, end;
};

struct OrderSpan {
  Picoseconds span;                              // end of the last slot; the first starts at 0
  std::vector<Picoseconds> first_start;          // by stage
  std::vector<Picoseconds> last_end;             // by stage
  std::vector<std::vector<SlotInterval>> slots;  // by stage, in the order of Order::slots
};

// INVALID_ARGUMENT for an order that ValidateOrder refuses, times of another shape or below 0, and
// an order that deadlocks: names every slot of the circle (FindDeadlock).
absl::StatusOr<OrderSpan> EvaluateOrder(const Order& order, const SlotTimes& times);

// A slot that cannot run, and the slot whose result it waits for.
struct Wait {
  std::size_t stage = 0;
  std::size_t index = 0;  // in the stage's slots
  std::size_t needs_stage = 0;
  std::size_t needs_index = 0;
};

// Slots that wait for each other: what one needs cannot run before the next one, on the same stage,
// and what the last needs cannot run before the first. Empty if the order comes to its end. Of
// several circles, the one that the first blocked stage waits for, from its lowest stage on.
// `order` must pass ValidateOrder.
std::vector<Wait> FindDeadlock(const Order& order);

}  // namespace optimus::pipeline
