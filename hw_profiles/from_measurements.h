#pragma once
// A hardware profile made of measurements.

#include <string>

#include "absl/status/statusor.h"
#include "base/measurement.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {

// The tables hold every measurement as it is; the roofline (peak, efficiencies, alpha and beta of
// each transfer) is fitted to them by least squares on relative error, for work that is in no
// table. Every number says what it comes from. What was not measured is taken from `base`, origin
// and source kept, and said so in the description. The result passes ValidateProfile.
absl::StatusOr<HardwareProfile> MakeProfile(const std::string& name,
                                            const HardwareMeasurements& measured,
                                            const HardwareProfile& base);

}  // namespace optimus::hw
