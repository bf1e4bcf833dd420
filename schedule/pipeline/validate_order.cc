#include "schedule/pipeline/validate_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {
namespace {

// How far one (chunk, micro-batch) has come on a stage.
enum class Progress : std::uint8_t { kNothing, kForwardDone, kDataDone, kAllDone };

// The step that `kind` takes: from which progress to which.
struct Step {
  Progress from = Progress::kNothing, to = Progress::kNothing;
};
Step StepOf(SlotKind kind) {
  switch (kind) {
    case SlotKind::kForward:
      return {Progress::kNothing, Progress::kForwardDone};
    case SlotKind::kBackward:
      return {Progress::kForwardDone, Progress::kAllDone};
    case SlotKind::kBackwardData:
      return {Progress::kForwardDone, Progress::kDataDone};
    case SlotKind::kBackwardWeight:
      return {Progress::kDataDone, Progress::kAllDone};
  }
  return {Progress::kAllDone, Progress::kNothing};  // no such kind: matches no unfinished progress
}

SlotKind Missing(Progress progress) {
  switch (progress) {
    case Progress::kNothing:
      return SlotKind::kForward;
    case Progress::kForwardDone:
      return SlotKind::kBackward;
    default:
      return SlotKind::kBackwardWeight;
  }
}

// A forward that is `with_next` needs a whole backward behind it.
bool HasPartner(const std::vector<Slot>& slots, std::size_t i) {
  return slots[i].kind == SlotKind::kForward && i + 1 < slots.size() &&
         slots[i + 1].kind == SlotKind::kBackward && !slots[i + 1].with_next;
}

absl::Status CheckPlacement(const Order& order) {
  if (order.placement != Placement::kBidirectional) return absl::OkStatus();
  if (order.chunks == 2 && order.micro_batches % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "order: a bidirectional placement has 2 chunks, one for each direction, and an even number "
      "of micro-batches; these are ",
      order.chunks, " chunks and ", order.micro_batches, " micro-batches"));
}

// One stage, slot by slot.
class StageCheck {
 public:
  StageCheck(const Order& order, std::size_t stage)
      : order_(order),
        stage_(stage),
        micro_batches_(static_cast<std::size_t>(order.micro_batches)),
        progress_(static_cast<std::size_t>(order.chunks) * micro_batches_, Progress::kNothing) {}

  std::optional<OrderProblem> Run() {
    const std::vector<Slot>& slots = order_.slots[stage_];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const char* what = Wrong(slots, i);
      if (what == kBeforeItsInput && ProgressOf(slots[i]) != Progress::kAllDone &&
          !ComesLater(slots, i)) {
        return OrderProblem{stage_, std::nullopt, InputOf(slots[i]), "is missing"};
      }
      if (what != nullptr) return OrderProblem{stage_, i, slots[i], what};
    }
    return FirstMissing();
  }

 private:
  static constexpr const char* kBeforeItsInput = "runs before what it needs on its own stage";

  const Progress& ProgressOf(const Slot& slot) const {
    return progress_[static_cast<std::size_t>(slot.chunk) * micro_batches_ +
                     static_cast<std::size_t>(slot.micro_batch)];
  }

  // What a slot waits for that ran too early.
  Slot InputOf(const Slot& slot) const {
    const bool nothing = ProgressOf(slot) == Progress::kNothing;
    return {nothing ? SlotKind::kForward : SlotKind::kBackwardData, slot.chunk, slot.micro_batch};
  }

  bool ComesLater(const std::vector<Slot>& slots, std::size_t i) const {
    Slot input = InputOf(slots[i]);
    return std::any_of(slots.begin() + static_cast<std::ptrdiff_t>(i), slots.end(),
                       [&](const Slot& slot) {
                         input.with_next = slot.with_next;
                         return slot == input;
                       });
  }

  bool Passes(int chunk, int micro_batch) const {
    const MicroBatchRange passing = MicroBatchesOf(order_, chunk);
    return micro_batch >= passing.begin && micro_batch < passing.end;
  }

  // What is wrong with slot `i`, nullptr if nothing; its step is then done.
  const char* Wrong(const std::vector<Slot>& slots, std::size_t i) {
    const Slot& slot = slots[i];
    if (slot.chunk < 0 || slot.chunk >= order_.chunks || slot.micro_batch < 0 ||
        slot.micro_batch >= order_.micro_batches) {
      return "no such chunk or micro-batch in this order";
    }
    if (!Passes(slot.chunk, slot.micro_batch)) {
      return "this micro-batch passes the model in the other direction";
    }
    if (slot.with_next && !HasPartner(slots, i)) {
      return "shares the stage with its next slot, but that is no whole backward";
    }
    if (slot.with_next && slots[i + 1].chunk == slot.chunk &&
        slots[i + 1].micro_batch == slot.micro_batch) {
      return "runs beside its own backward, which needs it first";
    }
    Progress& now = progress_[static_cast<std::size_t>(slot.chunk) * micro_batches_ +
                              static_cast<std::size_t>(slot.micro_batch)];
    const Step step = StepOf(slot.kind);
    if (now != step.from || step.to <= step.from) {
      return now > step.from ? "runs twice" : kBeforeItsInput;
    }
    now = step.to;
    return nullptr;
  }

  std::optional<OrderProblem> FirstMissing() const {
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      const auto chunk = static_cast<std::int32_t>(i / micro_batches_);
      const auto micro_batch = static_cast<std::int32_t>(i % micro_batches_);
      if (!Passes(chunk, micro_batch) || progress_[i] == Progress::kAllDone) continue;
      return OrderProblem{
          stage_, std::nullopt, {Missing(progress_[i]), chunk, micro_batch}, "is missing"};
    }
    return std::nullopt;
  }

  const Order& order_;
  const std::size_t stage_;
  const std::size_t micro_batches_;
  std::vector<Progress> progress_;  // by chunk and micro-batch
};

}  // namespace

std::optional<OrderProblem> FindProblem(const Order& order) {
  for (std::size_t stage = 0; stage < order.slots.size(); ++stage) {
    std::optional<OrderProblem> problem = StageCheck(order, stage).Run();
    if (problem.has_value()) return problem;
  }
  return std::nullopt;
}

absl::Status ValidateOrder(const Order& order) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(order.stages, order.chunks, order.micro_batches));
  if (order.slots.size() != static_cast<std::size_t>(order.stages)) {
    return absl::InvalidArgumentError(absl::StrCat("order: slots of ", order.slots.size(),
                                                   " stages, but ", order.stages, " stages"));
  }
  OPTIMUS_RETURN_IF_ERROR(CheckPlacement(order));
  const std::optional<OrderProblem> problem = FindProblem(order);
  if (!problem.has_value()) return absl::OkStatus();
  if (!problem->index.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", problem->stage, ": no ", ToString(problem->slot)));
  }
  return absl::InvalidArgumentError(absl::StrCat("stage ", problem->stage, ", slot ",
                                                 *problem->index, " (", ToString(problem->slot),
                                                 "): ", problem->what));
}

}  // namespace optimus::pipeline
