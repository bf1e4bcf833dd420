#pragma once
// A hardware profile made of measurements.

#include <string>

#include "absl/status/statusor.h"
#include "base/measurement.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {

// The tables hold every measurement as it is (those of `base` are dropped); the roofline and the
// links are fitted to them by least squares on relative error, for work that is in no table:
//   peak: the best FLOP rate of any GEMM or attention core; efficiencies: the fitted rate of all of
//   a kind, launch apart, over the peak. HBM alike, from memory-bound kernels.
//   Links: latency and rate of each kind of transfer, all its groups together; the bandwidth is the
//   rate of the fastest kind. NVLink SHARP is dropped where transfers inside a node were measured.
//   Interference: what was measured, from 1 to 10; a factor of a link without collectives is not.
// Numbers are clamped to what ValidateProfile allows. Origin MEASURED, source "cpu on DEVICE, HOST:
// median of N; ...", N the fewest repetitions of any. What was not measured (always:
// optimizer_step_ms) is taken from `base`, origin and source kept, and the description lists it.
// The result passes ValidateProfile, or it is INVALID_ARGUMENT, naming the measurement or field.
absl::StatusOr<HardwareProfile> MakeProfile(const std::string& name,
                                            const HardwareMeasurements& measured,
                                            const HardwareProfile& base);

}  // namespace optimus::hw
