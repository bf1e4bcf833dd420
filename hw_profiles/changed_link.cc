#include "hw_profiles/changed_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {

HardwareProfile WithoutMeasuredTransfers(HardwareProfile profile, LinkScope scope) {
  HardwareProfile kept = profile;
  kept.clear_measured_transfers();
  for (MeasuredTransfer& transfer : *profile.mutable_measured_transfers()) {
    const LinkScope link = transfer.between_nodes() ? LinkScope::kNic : LinkScope::kNvlink;
    if (link != scope) *kept.add_measured_transfers() = std::move(transfer);
  }
  return kept;
}

absl::StatusOr<HardwareProfile> WithBandwidth(HardwareProfile profile, LinkScope scope,
                                              BytesPerSecond bandwidth) {
  profile = WithoutMeasuredTransfers(std::move(profile), scope);
  Link& link = scope == LinkScope::kNic ? *profile.mutable_nic() : *profile.mutable_nvlink();
  const double before = link.bandwidth_gb_per_s().value();
  link.mutable_bandwidth_gb_per_s()->set_value(bandwidth.value() / 1e9);
  link.mutable_bandwidth_gb_per_s()->set_origin(Number::ASSUMED);
  link.mutable_bandwidth_gb_per_s()->set_source(
      absl::StrCat("what if, instead of ", before, " GB/s"));
  OPTIMUS_RETURN_IF_ERROR(ValidateProfile(profile));
  return profile;
}

}  // namespace optimus::hw
