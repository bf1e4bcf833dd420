#include "schedule/step/strategy_search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
#include "schedule/step/check_fields.h"

namespace optimus::step {
namespace {

using Sizes = std::array<std::int32_t, 3>;  // dp, pp, tp

std::vector<Sizes> Factorisations(std::int32_t gpus) {
  std::vector<Sizes> result;
  for (std::int32_t dp = gpus; dp >= 1; --dp) {
    if (gpus % dp != 0) continue;
    for (std::int32_t pp = gpus / dp; pp >= 1; --pp) {
      if (gpus / dp % pp == 0) result.push_back({dp, pp, gpus / dp / pp});
    }
  }
  return result;
}

StageMemory Fullest(const std::vector<StageMemory>& stages) {
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.total() < b.total(); });
}

absl::StatusOr<StrategyPlan> Evaluate(Experiment experiment, const Sizes& sizes,
                                      const hw::ProfileCostModel& costs) {
  experiment.mutable_plan()->set_data_parallel(sizes[0]);
  experiment.mutable_plan()->set_pipeline_parallel(sizes[1]);
  experiment.mutable_plan()->set_tensor_parallel(sizes[2]);
  OPTIMUS_ASSIGN_OR_RETURN(Step step, BuildStep(experiment, costs));
  StrategyPlan result{step.experiment.plan(), Picoseconds(0), Fullest(step.memory)};
  if (result.memory.total() > costs.memory_capacity()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("GPU memory: %.1f GiB needed, %.1f GiB there", ToGib(result.memory.total()),
                        ToGib(costs.memory_capacity())));
  }
  ir::CriticalPathRunner runner(costs);
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline, runner.Run(step.schedule));
  result.step = timeline.step;
  return result;
}

}  // namespace

absl::StatusOr<StrategySearch> SearchStrategyPlans(const Experiment& experiment,
                                                   const hw::ProfileCostModel& costs) {
  const Plan::Strategy strategy = experiment.plan().strategy();
  const std::int32_t gpus = experiment.hardware().gpus();
  OPTIMUS_RETURN_IF_ERROR(CheckPositive("hardware.gpus", gpus));
  if (strategy != Plan::ALPA && strategy != Plan::FSDP) {
    return Bad("plan.strategy", absl::StrCat("is ", Plan::Strategy_Name(strategy)),
               "only plans of ALPA and FSDP are searched here");
  }
  const std::vector<Sizes> candidates =
      strategy == Plan::ALPA ? Factorisations(gpus) : std::vector<Sizes>{{gpus, 1, 1}};
  StrategySearch search;
  for (const Sizes& sizes : candidates) {
    absl::StatusOr<StrategyPlan> plan = Evaluate(experiment, sizes, costs);
    if (plan.ok()) {
      search.ranked.push_back(*std::move(plan));
    } else {
      search.rejected.push_back(
          {sizes[0], sizes[1], sizes[2], std::string(plan.status().message())});
    }
  }
  std::stable_sort(search.ranked.begin(), search.ranked.end(),
                   [](const StrategyPlan& a, const StrategyPlan& b) { return a.step < b.step; });
  return search;
}

}  // namespace optimus::step
