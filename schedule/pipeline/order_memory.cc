#include "schedule/pipeline/order_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/pipeline/validate_order.h"

namespace optimus::pipeline {
namespace {

// Counted in whole numbers and weighed afterwards, so that shares add up without drift.
double PeakOf(const std::vector<Slot>& slots, double weight_share) {
  std::int64_t whole = 0;        // between forward and (data) gradient
  std::int64_t for_weights = 0;  // between data and weight gradient
  double peak = 0;
  for (const Slot& slot : slots) {
    switch (slot.kind) {
      case SlotKind::kForward:
        ++whole;
        break;
      case SlotKind::kBackward:
        --whole;
        break;
      case SlotKind::kBackwardData:
        --whole;
        ++for_weights;
        break;
      case SlotKind::kBackwardWeight:
        --for_weights;
        break;
    }
    peak = std::max(peak,
                    static_cast<double>(whole) + weight_share * static_cast<double>(for_weights));
  }
  return peak;
}

}  // namespace

absl::Status CheckShares(const ActivationShares& shares, int stages) {
  if (!shares.by_stage.empty() && shares.by_stage.size() != static_cast<std::size_t>(stages)) {
    return absl::InvalidArgumentError(absl::StrCat("weight_share: ", shares.by_stage.size(),
                                                   " shares for ", stages,
                                                   " pipeline stages; needs one for each"));
  }
  for (int s = 0; s < stages; ++s) {
    const double share = shares.Of(s);
    if (share >= 0 && std::isfinite(share)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("weight_share: ", share, "; needs a finite share, 0 or more"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> PeakActivations(const Order& order,
                                                    const ActivationShares& shares) {
  OPTIMUS_RETURN_IF_ERROR(ValidateOrder(order));
  OPTIMUS_RETURN_IF_ERROR(CheckShares(shares, order.stages));
  std::vector<double> peaks;
  peaks.reserve(order.slots.size());
  for (const auto& slots : order.slots) {
    peaks.push_back(PeakOf(slots, shares.Of(peaks.size())));
  }
  return peaks;
}

}  // namespace optimus::pipeline
