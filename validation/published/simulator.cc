#include "validation/published/simulator.h"

#include <algorithm>

#include "base/status_macros.h"
#include "schedule/ir/validate.h"

namespace optimus::validation {

absl::StatusOr<const hw::ProfileCostModel*> Simulator::Costs(const std::string& profile) {
  std::unique_ptr<const hw::ProfileCostModel>& costs = costs_[profile];
  if (costs == nullptr) {
    absl::StatusOr<hw::HardwareProfile> loaded = hw::LoadProfile(profile);
    if (!loaded.ok()) {
      costs_.erase(profile);
      return loaded.status();
    }
    costs = std::make_unique<const hw::ProfileCostModel>(*std::move(loaded));
  }
  return costs.get();
}

absl::StatusOr<step::Step> Simulator::Build(const step::Experiment& experiment) {
  OPTIMUS_ASSIGN_OR_RETURN(const hw::ProfileCostModel* costs,
                           Costs(experiment.hardware().profile()));
  OPTIMUS_ASSIGN_OR_RETURN(step::Step step, step::BuildStep(experiment, *costs));
  OPTIMUS_RETURN_IF_ERROR(ir::Validate(step.schedule));
  return step;
}

absl::StatusOr<ir::Timeline> Simulator::Run(const step::Step& step, bool with_spans) {
  OPTIMUS_ASSIGN_OR_RETURN(const hw::ProfileCostModel* costs,
                           Costs(step.experiment.hardware().profile()));
  ++runs_;
  return run_(step.schedule, *costs, with_spans);
}

absl::StatusOr<Picoseconds> Simulator::StepTime(const step::Experiment& experiment) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Step step, Build(experiment));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline, Run(step));
  return timeline.step;
}

absl::StatusOr<bool> Simulator::Fits(const step::Step& step) {
  OPTIMUS_ASSIGN_OR_RETURN(const hw::ProfileCostModel* costs,
                           Costs(step.experiment.hardware().profile()));
  const Bytes capacity = costs->memory_capacity();
  return std::all_of(step.memory.begin(), step.memory.end(),
                     [&](const step::StageMemory& stage) { return stage.total() <= capacity; });
}

}  // namespace optimus::validation
