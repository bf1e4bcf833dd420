#include "schedule/pipeline/dualpipe.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/dualpipe_slots.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {
namespace {

absl::Status Check(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(stages, 2, micro_batches));
  if (stages % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pipeline stages: ", stages, " is odd; DualPipe pairs each stage with the one ",
        "that mirrors it and needs an even number"));
  }
  if (micro_batches % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro-batches: ", micro_batches, " is odd; DualPipe sends one half down ",
                     "and one half up the stages and needs an even number"));
  }
  const std::int64_t least = std::int64_t{2} * stages;
  if (micro_batches < least) {
    return absl::InvalidArgumentError(absl::StrCat("micro-batches: ", micro_batches,
                                                   " is fewer than ", least, ", twice the ", stages,
                                                   " pipeline stages, which DualPipe needs"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Order> DualPipe(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(Check(stages, micro_batches));
  Order order{stages, 2, micro_batches, {}, Placement::kBidirectional};
  const Way down{0, MicroBatchesOf(order, 0).begin};
  const Way up{1, MicroBatchesOf(order, 1).begin};
  order.slots.reserve(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    const bool upper_half = s < stages / 2;
    order.slots.push_back(DualPipeSlots({.depth = stages / 2,
                                         .distance = std::min(s, stages - 1 - s),
                                         .micro_batches = micro_batches / 2,
                                         .near = upper_half ? down : up,
                                         .far = upper_half ? up : down}));
  }
  return order;
}

}  // namespace optimus::pipeline
