#include "schedule/pipeline/zb_h2.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/delayed_weights.h"
#include "schedule/pipeline/order_builder.h"

namespace optimus::pipeline {

absl::StatusOr<Order> ZbH2(int stages, int micro_batches) {
  OPTIMUS_RETURN_IF_ERROR(CheckCounts(stages, 1, micro_batches));
  const std::int64_t least = 2 * std::int64_t{stages} - 1;
  if (micro_batches < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "micro-batches: ", micro_batches, " with ", stages,
        " pipeline stages; ZB-H2 needs at least 2 * stages - 1 = ", least, " (ZB-H1 takes any)"));
  }
  Order order{stages, 1, micro_batches, {}};
  order.slots.reserve(stages);
  for (int s = 0; s < stages; ++s) {
    order.slots.push_back(OneFOneBWithDelayedWeights(micro_batches, 2 * (stages - 1 - s), 2 * s));
  }
  return order;
}

}  // namespace optimus::pipeline
