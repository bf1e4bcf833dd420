#pragma once
// What the automatic schedules of the zero-bubble family are made for, and how they are judged.

#include <compare>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "schedule/pipeline/order.h"
#include "schedule/pipeline/order_memory.h"
#include "schedule/pipeline/order_span.h"

namespace optimus::pipeline {

// What is made short first; the other breaks ties.
enum class ZbObjective : std::uint8_t {
  kStageSpan,  // largest time from a stage's own first start to its own last end (the paper's cost:
               // its optimizer does not wait for other stages)
  kSpan,       // from the first start of all to the last end of all
};

struct ZbProblem {
  int stages = 1;
  int chunks = 1;
  int micro_batches = 1;
  Placement placement = Placement::kLoop;
  SlotTimes times;  // by stage and chunk
  // The most that may be held at once, by stage, in activations of one micro-batch of one chunk
  // (PeakActivations).
  std::vector<double> memory_limit;
  ActivationShares shares;
  ZbObjective objective = ZbObjective::kStageSpan;
};

// INVALID_ARGUMENT for counts below 1, times or limits of another shape, negative times, shared
// slots (SlotTimes::together), shares that CheckShares refuses, and a limit below one micro-batch
// in every chunk, one of them on its way from data to weight gradient, under which none could pass.
absl::Status CheckZbProblem(const ZbProblem& problem);

// Less is better.
struct ZbScore {
  Picoseconds first, second;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const ZbScore&, const ZbScore&) = default;
};
ZbScore ScoreOf(const std::vector<Picoseconds>& first_start,
                const std::vector<Picoseconds>& last_end, ZbObjective objective);

// What a stage holds, counted in whole numbers so that shares add up without drift.
struct Held {
  std::int64_t whole = 0;        // between forward and data gradient
  std::int64_t for_weights = 0;  // between data and weight gradient
  void Add(SlotKind kind) {
    if (kind == SlotKind::kForward) ++whole;
    if (kind == SlotKind::kBackwardData || kind == SlotKind::kBackward) --whole;
    if (kind == SlotKind::kBackwardData) ++for_weights;
    if (kind == SlotKind::kBackwardWeight) --for_weights;
  }
  double Activations(double weight_share) const {
    return static_cast<double>(whole) + weight_share * static_cast<double>(for_weights);
  }
};

// What a data gradient adds to what is held, where weight gradients need more than forwards leave.
inline double AddedByData(double weight_share) { return weight_share > 1 ? weight_share - 1 : 0; }

// Whether `held` is within `limit`, but for the rounding of shares.
inline bool Fits(const Held& held, double weight_share, double limit) {
  constexpr double kRounding = 1e-9;
  return held.Activations(weight_share) <= limit + kRounding;
}

// Whether every stage of `order` stays within its limit.
bool FitsMemory(const ZbProblem& problem, const Order& order);

}  // namespace optimus::pipeline
