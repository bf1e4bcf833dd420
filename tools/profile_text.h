#pragma once
// A measured profile, for people and machines.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/measurement.h"
#include "hw_profiles/profile.h"

namespace optimus::tools {

struct ProfileReport {
  HardwareMeasurements measured;
  hw::HardwareProfile profile;            // made of it
  hw::HardwareProfile base;               // where the rest is from
  std::string base_from;                  // why that one: "--base"
  std::vector<std::string> not_measured;  // as MakeProfile names it
  double wall_s = 0;
};

// A table a kind of measurement: kernels, transfers, launch, interference; what the roofline fitted
// to them is; what was not measured and where it is from. The last line is the wall time.
std::string ProfileText(const ProfileReport& report);
std::string ProfileJson(const ProfileReport& report);

// As a text protobuf that LoadProfile reads. INTERNAL where it cannot be written.
absl::StatusOr<std::string> EncodeProfile(const hw::HardwareProfile& profile);

}  // namespace optimus::tools
