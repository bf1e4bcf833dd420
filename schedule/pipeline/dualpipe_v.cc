#include "schedule/pipeline/dualpipe_v.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/dualpipe_slots.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {

absl::StatusOr<Order> DualPipeV(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(stages, 2, micro_batches));
  const std::int64_t least = std::int64_t{2} * stages;
  if (micro_batches < least) {
    return absl::InvalidArgumentError(absl::StrCat("micro-batches: ", micro_batches,
                                                   " is fewer than ", least, ", twice the ", stages,
                                                   " pipeline stages, which DualPipeV needs"));
  }
  Order order{stages, 2, micro_batches, {}, Placement::kV};
  order.slots.reserve(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    order.slots.push_back(DualPipeSlots({.depth = stages,
                                         .distance = s,
                                         .micro_batches = micro_batches,
                                         .near = {0, 0},
                                         .far = {1, 0}}));
  }
  return order;
}

}  // namespace optimus::pipeline
