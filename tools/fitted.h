#pragma once
// Whether a published figure is an input: which constants of a profile were chosen on it.

#include <string>
#include <vector>

#include "hw_profiles/profile.pb.h"

namespace optimus::tools {

// Fields ("gpu.gemm_efficiency") of the profile whose origin is FITTED and whose source quotes
// `value` with `unit` ("1.4", "ms": "... 1.4 ms forward ..."), in the order of the profile.
std::vector<std::string> FittedConstants(const hw::HardwareProfile& profile,
                                         const std::string& value, const std::string& unit);

}  // namespace optimus::tools
