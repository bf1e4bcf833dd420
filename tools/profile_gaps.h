#pragma once
// What a measured profile could not measure, in words.

#include <string>
#include <vector>

#include "hw_profiles/profile.h"

namespace optimus::tools {

// `not_measured`: as MakeProfile names it. A line a group of fields, each with the value that was
// kept: "links between nodes: 50 GB/s", "in a node: broadcast, all_to_all".
std::vector<std::string> NotMeasuredLines(const hw::HardwareProfile& profile,
                                          const std::vector<std::string>& not_measured);

// One sentence where `base` is a machine of quite another speed than the one that was measured, so
// that what was kept from it says little here; else empty.
std::string OtherMachineText(const hw::HardwareProfile& profile, const hw::HardwareProfile& base,
                             const std::vector<std::string>& not_measured);

}  // namespace optimus::tools
