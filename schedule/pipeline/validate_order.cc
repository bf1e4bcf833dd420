#include "schedule/pipeline/validate_order.h"

#include <cstddef>
#include <cstdint>

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

const char* Missing(Progress progress) {
  switch (progress) {
    case Progress::kNothing:
      return "forward";
    case Progress::kForwardDone:
      return "backward";
    default:
      return "backward (weight)";
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

absl::Status ValidateStage(const Order& order, std::size_t stage) {
  const auto micro_batches = static_cast<std::size_t>(order.micro_batches);
  std::vector<Progress> progress(static_cast<std::size_t>(order.chunks) * micro_batches,
                                 Progress::kNothing);
  for (std::size_t i = 0; i < order.slots[stage].size(); ++i) {
    const Slot& slot = order.slots[stage][i];
    const auto error = [&](const char* what) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", stage, ", slot ", i, " (", ToString(slot), "): ", what));
    };
    if (slot.chunk < 0 || slot.chunk >= order.chunks || slot.micro_batch < 0 ||
        slot.micro_batch >= order.micro_batches) {
      return error("no such chunk or micro-batch in this order");
    }
    const MicroBatchRange passing = MicroBatchesOf(order, slot.chunk);
    if (slot.micro_batch < passing.begin || slot.micro_batch >= passing.end) {
      return error("this micro-batch passes the model in the other direction");
    }
    if (slot.with_next && !HasPartner(order.slots[stage], i)) {
      return error("shares the stage with its next slot, but that is no whole backward");
    }
    Progress& now = progress[static_cast<std::size_t>(slot.chunk) * micro_batches +
                             static_cast<std::size_t>(slot.micro_batch)];
    const Step step = StepOf(slot.kind);
    if (now != step.from || step.to <= step.from) {
      return error(now > step.from ? "runs twice" : "runs before what it needs on its own stage");
    }
    now = step.to;
  }
  for (std::size_t i = 0; i < progress.size(); ++i) {
    const MicroBatchRange passing = MicroBatchesOf(order, static_cast<int>(i / micro_batches));
    const auto micro_batch = static_cast<std::int32_t>(i % micro_batches);
    if (micro_batch < passing.begin || micro_batch >= passing.end) continue;
    if (progress[i] != Progress::kAllDone) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, ": no ", Missing(progress[i]),
                                                     " of chunk ", i / micro_batches,
                                                     ", micro-batch ", micro_batch));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateOrder(const Order& order) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(order.stages, order.chunks, order.micro_batches));
  if (order.slots.size() != static_cast<std::size_t>(order.stages)) {
    return absl::InvalidArgumentError(absl::StrCat("order: slots of ", order.slots.size(),
                                                   " stages, but ", order.stages, " stages"));
  }
  OPTIMUS_RETURN_IF_ERROR(CheckPlacement(order));
  for (std::size_t stage = 0; stage < order.slots.size(); ++stage) {
    OPTIMUS_RETURN_IF_ERROR(ValidateStage(order, stage));
  }
  return absl::OkStatus();
}

}  // namespace optimus::pipeline
