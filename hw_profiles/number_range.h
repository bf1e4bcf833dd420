#pragma once
// The range of a profile's number follows from the unit that ends its name. Internal to
// hw_profiles.

#include <string>

namespace optimus::hw {

struct NumberRange {
  double least = 0, most = 0;
};
// `field`: "gemm_efficiency", "kernel_launch_us", ...
NumberRange RangeOf(const std::string& field);

}  // namespace optimus::hw
