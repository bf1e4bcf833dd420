#pragma once
// Which (dp, pp, tp) a strategy would choose where nobody says: the fastest of all that fit in
// memory.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "hw_profiles/profile.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/step.h"

namespace optimus::step {

struct StrategyPlan {
  Plan plan;           // the experiment's, with its sizes; defaults filled in
  Picoseconds step;    // by the critical path
  StageMemory memory;  // of the fullest stage
};

struct RejectedStrategyPlan {
  std::int64_t data_parallel = 1, pipeline_parallel = 1, tensor_parallel = 1;
  std::string reason;  // "GPU memory: 92.1 GiB needed, 80.0 GiB there", or why it cannot be built
};

struct StrategySearch {
  std::vector<StrategyPlan> ranked;  // fastest first; ties: the order of enumeration
  std::vector<RejectedStrategyPlan> rejected;
};

// ALPA: every factorisation of hardware.gpus into dp * pp * tp, largest dp first, then largest pp.
// FSDP: dp = hardware.gpus. The sizes in experiment.plan are not read; everything else, batch and
// recomputation included, is kept. INVALID_ARGUMENT for another strategy.
absl::StatusOr<StrategySearch> SearchStrategyPlans(const Experiment& experiment,
                                                   const hw::ProfileCostModel& costs);

}  // namespace optimus::step
