#include "schedule/colocate/llm_step.h"

#include <utility>

#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
#include "schedule/step/check_strategy.h"

namespace optimus::colocate {

absl::StatusOr<std::vector<LlmStep>> BuildLlmSteps(const step::Experiment& experiment,
                                                   const hw::ProfileCostModel& costs) {
  std::vector<step::Plan::WarmUp> warm_ups = {experiment.plan().warm_up()};
  if (experiment.plan().warm_up() == step::Plan::BEST) {
    warm_ups = {step::Plan::MEGATRON, step::Plan::DEFERRED};
  }
  std::vector<LlmStep> steps;
  for (const step::Plan::WarmUp warm_up : warm_ups) {
    LlmStep llm;
    llm.warm_up = warm_up;
    step::Experiment alone = step::LlmAlone(experiment);
    alone.mutable_plan()->set_warm_up(warm_up);
    OPTIMUS_ASSIGN_OR_RETURN(llm.step, step::BuildStep(alone, costs));
    ir::CriticalPathRunner runner(costs);
    OPTIMUS_ASSIGN_OR_RETURN(llm.timeline, runner.Run(llm.step.schedule));
    llm.llm = MakeLlmTimeline(llm.step.schedule, llm.timeline);
    steps.push_back(std::move(llm));
  }
  return steps;
}

}  // namespace optimus::colocate
