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
    Progress& now = progress[static_cast<std::size_t>(slot.chunk) * micro_batches +
                             static_cast<std::size_t>(slot.micro_batch)];
    const Step step = StepOf(slot.kind);
    if (now != step.from || step.to <= step.from) {
      return error(now > step.from ? "runs twice" : "runs before what it needs on its own stage");
    }
    now = step.to;
  }
  for (std::size_t i = 0; i < progress.size(); ++i) {
    if (progress[i] != Progress::kAllDone) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, ": no ", Missing(progress[i]),
                                                     " of chunk ", i / micro_batches,
                                                     ", micro-batch ", i % micro_batches));
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
  for (std::size_t stage = 0; stage < order.slots.size(); ++stage) {
    OPTIMUS_RETURN_IF_ERROR(ValidateStage(order, stage));
  }
  return absl::OkStatus();
}

}  // namespace optimus::pipeline
