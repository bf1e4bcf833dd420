#pragma once
// The simulator of this build, for those who need the step of a Schedule. SimGrid, or in a build
// without it the contention-free runner: the same where no link is shared.

#include <string>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::tools {

struct SimulateOptions {
  bool interference = true;
  // Fabric and slow GPUs, of SimGrid alone; whether kernels and collectives slow each other is said
  // above.
  step::Hardware hardware = {};
  // Every GPU an entity of its own, with spans; otherwise as coarse as is exact, without.
  bool every_gpu = false;
};

// "SimGrid", "the contention-free runner (this build has no SimGrid)".
std::string SimulatorName();

absl::StatusOr<ir::Timeline> SimulateSchedule(const ir::Schedule& schedule, const CostModel& costs,
                                              const SimulateOptions& options);

}  // namespace optimus::tools
