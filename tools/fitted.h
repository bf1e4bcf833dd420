#pragma once
// Whether a published figure is an input: constants of a profile that were chosen on it.

#include <string>

#include "absl/status/status.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::tools {

// Whether `constant` ("gpu.gemm_efficiency") is a number of `profile` whose origin is FITTED.
// INVALID_ARGUMENT says what it is instead, and which constants are fitted.
absl::Status CheckFitted(const hw::HardwareProfile& profile, const std::string& constant);

}  // namespace optimus::tools
