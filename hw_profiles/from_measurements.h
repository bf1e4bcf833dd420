#pragma once
// A hardware profile made of measurements.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/measurement.h"
#include "hw_profiles/profile.h"

namespace optimus::hw {

// The tables hold every measurement as it is (those of `base` are dropped); the roofline and the
// links are fitted to them by least squares on relative error, for work that is in no table:
//   peak: the best FLOP rate of any GEMM or attention core; efficiencies: the fitted rate of all of
//   a kind, launch apart, over the peak. HBM alike, from memory-bound kernels. Tiles are dropped
//   where GEMMs were measured.
//   Links: latency and rate of each kind of transfer, all its groups together; the bandwidth is the
//   rate of the fastest kind. One size alone says nothing about rates: of it only the latency is
//   taken. Protocols are dropped where transfers were measured, NVLink SHARP where it was inside a
//   node.
//   Interference: what was measured, from 1 to 10.
//   Ranks a node: those that were started on one; a rank alone says nothing about its node.
// Numbers are clamped to what ValidateProfile allows. Origin MEASURED, source "cpu on DEVICE, HOST:
// median of N; ...", N the fewest repetitions of any. What was not measured (always:
// optimizer_step_ms) is taken from `base`, origin and source kept; the description lists it, and
// `not_measured`, unless null, gets it: "gpu.optimizer_step_ms", a whole link ("nic"), a kind of
// transfer ("nvlink.broadcast") or a number of it ("nvlink.all_reduce.efficiency"). The result
// passes ValidateProfile, or it is INVALID_ARGUMENT, naming the measurement or field.
absl::StatusOr<HardwareProfile> MakeProfile(const std::string& name,
                                            const HardwareMeasurements& measured,
                                            const HardwareProfile& base,
                                            std::vector<std::string>* not_measured = nullptr);

}  // namespace optimus::hw
