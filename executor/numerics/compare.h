#pragma once
// Gradients and losses of all ranks against the reference. Internal to numerics/ and its tests.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/numerics/numerics.h"
#include "executor/numerics/workload.h"

namespace optimus::executor::numerics {

// What one rank has to say after its steps: an error, or its losses and gradients.
std::string EncodeResults(NumericsWorkload& workload);

// `results`: of every rank, by rank. An error of any rank, and a part of a tensor that no rank
// holds, are errors.
absl::StatusOr<NumericsReport> CompareResults(const ir::Schedule& schedule,
                                              const NumericsModel& model,
                                              const std::vector<std::string>& results);

}  // namespace optimus::executor::numerics
