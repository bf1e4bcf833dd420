#pragma once
// A measured profile, for people and machines.

#include <string>

#include "absl/status/statusor.h"
#include "base/measurement.h"
#include "hw_profiles/profile.h"

namespace optimus::tools {

// A table a kind of measurement: kernels, transfers, launch, interference; and what the roofline
// fitted to them is. `wall_s` is the last line.
std::string ProfileText(const HardwareMeasurements& measured, const hw::HardwareProfile& profile,
                        double wall_s);
std::string ProfileJson(const HardwareMeasurements& measured, const hw::HardwareProfile& profile);

// As a text protobuf that LoadProfile reads. INTERNAL where it cannot be written.
absl::StatusOr<std::string> EncodeProfile(const hw::HardwareProfile& profile);

}  // namespace optimus::tools
