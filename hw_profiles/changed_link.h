#pragma once
// A profile with another link: what-ifs of `optimus replay --link`.

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "base/units.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

// `profile` without what was measured over the link of `scope` (kNvlink or kNic): measured times
// say nothing of another bandwidth, so both sides of a comparison have to go by the link's own
// numbers.
HardwareProfile WithoutMeasuredTransfers(HardwareProfile profile, LinkScope scope);

// The same with another raw bandwidth, per GPU and direction; latencies and efficiencies stay.
// INVALID_ARGUMENT where the bandwidth is out of the range of profiles.
absl::StatusOr<HardwareProfile> WithBandwidth(HardwareProfile profile, LinkScope scope,
                                              BytesPerSecond bandwidth);

}  // namespace optimus::hw
