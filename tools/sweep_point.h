#pragma once
// optimus sweep SWEEP.textproto --point=N --experiment=FILE

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::tools {

// Writes what point `number` simulates as an experiment, which gives the figures of its row: slow
// GPUs that a seed draws are named, derived values are filled in. A profile that the sweep changes
// is written beside it. INVALID_ARGUMENT for a number that is no point's, for a point that is
// impossible, and for files that the sweep reads. Returns the exit code.
absl::StatusOr<int> WritePoint(sweep::LoadedSweep& sweep, std::int64_t number,
                               const std::string& file);

}  // namespace optimus::tools
