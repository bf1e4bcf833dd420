#include "schedule/pipeline/zb_v.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/order_builder.h"
#include "schedule/pipeline/zb_search.h"

namespace optimus::pipeline {
namespace {

constexpr int kChunks = 2;

// Slots of one stage; each kind and chunk takes the micro-batches in turn.
class StageWriter {
 public:
  explicit StageWriter(int micro_batches) : micro_batches_(micro_batches) {
    slots_.reserve(static_cast<std::size_t>(micro_batches) * 3 * kChunks);
  }
  void Forward(int chunk) { slots_.push_back({SlotKind::kForward, chunk, forward_[chunk]++}); }
  void Data(int chunk) { slots_.push_back({SlotKind::kBackwardData, chunk, data_[chunk]++}); }
  void Weight(int chunk) { slots_.push_back({SlotKind::kBackwardWeight, chunk, weight_[chunk]++}); }
  void Backward(int chunk) {
    Data(chunk);
    Weight(chunk);
  }
  bool ForwardsLeft(int chunk) const { return forward_[chunk] < micro_batches_; }
  bool WeightsLeft(int chunk) const { return weight_[chunk] < micro_batches_; }
  std::vector<Slot> Take() { return std::move(slots_); }

 private:
  int micro_batches_;
  std::array<int, kChunks> forward_{}, data_{}, weight_{};
  std::vector<Slot> slots_;
};

std::vector<Slot> StageOfV(int stages, int micro_batches, int stage) {
  StageWriter out(micro_batches);
  const int after = stages - stage;
  for (int i = 0; i < 2 * after - 1; ++i) out.Forward(0);
  for (int i = 0; i < stage; ++i) {
    out.Forward(1);
    out.Forward(0);
  }
  for (int i = 0; i < after; ++i) {
    out.Forward(1);
    out.Backward(1);
  }
  while (out.ForwardsLeft(1)) {
    if (out.ForwardsLeft(0)) out.Forward(0);
    out.Backward(0);
    out.Forward(1);
    out.Backward(1);
  }
  for (int i = 0; i < stage; ++i) {
    out.Data(0);
    out.Data(1);
  }
  for (int i = 0; i < after; ++i) out.Backward(0);
  for (const int chunk : {1, 0}) {
    while (out.WeightsLeft(chunk)) out.Weight(chunk);
  }
  return out.Take();
}

}  // namespace

absl::StatusOr<Order> ZbV(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(stages, kChunks, micro_batches));
  const std::int64_t least = 2 * std::int64_t{stages} - 1;
  if (micro_batches < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro-batches: ", micro_batches, " with ", stages,
                     " pipeline stages; the textbook ZB-V needs at least 2 * stages - 1 = ", least,
                     " (the automatic one takes any)"));
  }
  Order order{stages, kChunks, micro_batches, {}, Placement::kV};
  order.slots.reserve(stages);
  for (int s = 0; s < stages; ++s) {
    order.slots.push_back(StageOfV(stages, micro_batches, s));
  }
  return order;
}

absl::StatusOr<Order> ZbVAuto(const ZbVOptions& options) {
  ZbProblem problem;
  problem.stages = options.stages;
  problem.chunks = kChunks;
  problem.micro_batches = options.micro_batches;
  problem.placement = Placement::kV;
  problem.times = options.times;
  problem.memory_limit = options.memory_limit;
  problem.shares = options.shares;
  problem.objective = options.objective;
  std::vector<Order> known;
  // Too few micro-batches for it: then it is none of the choices.
  if (auto order = ZbV(options.stages, options.micro_batches); order.ok()) {
    known.push_back(*std::move(order));
  }
  return SearchZbOrder(problem, known);
}

}  // namespace optimus::pipeline
