#pragma once
// Measurements as rows of a profile's tables. Internal to hw_profiles.

#include "absl/status/status.h"
#include "base/measurement.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

// Replaces the tables of `profile` by what was measured, in its order, and checks them.
// INVALID_ARGUMENT names the measurement or the row.
absl::Status FillMeasuredTables(const HardwareMeasurements& measured, HardwareProfile& profile);

}  // namespace optimus::hw
