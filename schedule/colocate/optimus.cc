#include "schedule/colocate/optimus.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/colocate/emit.h"
#include "schedule/colocate/judge.h"
#include "schedule/colocate/search.h"
#include "schedule/step/check.h"

namespace optimus::colocate {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Everything that planning makes.
struct Planning {
  step::Experiment experiment;  // defaults filled in
  std::vector<LlmStep> llms;
  step::Stack stack;
  step::Optimus::Scheduler scheduler = step::Optimus::PAPER;
  SearchResult search;

  EncoderContext context(const hw::ProfileCostModel& costs) const {
    return {experiment, stack, costs, scheduler};
  }
  bool IsJudged(const PlanOptions& options) const {
    return options.judge && scheduler == step::Optimus::LIST;
  }
};

// The bubble scheduler's time and memory grow with the square of the micro-batches of a pipeline,
// and with the encoder operations in it. At these limits it takes some 20 s and 1 GiB.
constexpr std::int32_t kMostMicroBatches = 512;
constexpr std::int64_t kMostPasses = 100'000;

// A pass: one layer of an encoder on one slice of one micro-batch.
absl::Status CheckSize(const step::Experiment& experiment, const step::Stack& stack) {
  const std::int32_t micro_batches = step::MicroBatches(experiment);
  if (micro_batches > kMostMicroBatches) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch.global_batch: makes ", micro_batches,
                     " micro-batches of every pipeline; OPTIMUS ", "plans at most ",
                     kMostMicroBatches, "; use larger micro-batches or more data parallelism"));
  }
  for (std::size_t k = 1; k < stack.modules.size(); ++k) {
    const step::Module& module = stack.modules[k];
    const std::int64_t passes =
        std::int64_t{micro_batches} * module.slices * module.config.num_layers();
    if (passes <= kMostPasses) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "encoders[", k - 1, "].sequences_per_slice: ", micro_batches, " micro-batches in ",
        module.slices, " slices through ", module.config.num_layers(), " layers are ", passes,
        " passes of a layer; OPTIMUS plans at most ", kMostPasses, "; use larger slices"));
  }
  return absl::OkStatus();
}

absl::Status CheckSplits(const step::Experiment& experiment, const step::Stack& stack) {
  const auto& plans = experiment.plan().optimus().encoder_plans();
  int given = 0;
  for (int k = 0; k < plans.size(); ++k) {
    const auto& split = plans[k].split();
    if (split.empty()) continue;
    ++given;
    const step::Plan& llm = experiment.plan();
    const ir::Parallelism world = {llm.data_parallel(), llm.pipeline_parallel(),
                                   llm.tensor_parallel()};
    const auto micro_batches =
        static_cast<std::int32_t>(MicroBatchesWithInput(experiment, k).size());
    const absl::Status status = planner::ValidateSplit(
        {split.begin(), split.end()}, micro_batches,
        planner::PipelinesOf({plans[k].pipeline_parallel(), plans[k].tensor_parallel()}, world));
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("plan.optimus.encoder_plans[", k,
                                                   "].split: ", std::string(status.message()), " (",
                                                   stack.modules[k + 1].name, ")"));
  }
  if (given == 0 || given == plans.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("plan.optimus.encoder_plans: ", given, " of ", plans.size(),
                   " have a split; give one to every encoder or to none"));
}

absl::StatusOr<Planning> MakePlanning(const step::Experiment& experiment,
                                      const hw::ProfileCostModel& costs,
                                      const PlanOptions& options) {
  const auto begin = Clock::now();
  Planning planning;
  planning.experiment = experiment;
  step::FillDefaults(planning.experiment);
  OPTIMUS_RETURN_IF_ERROR(step::CheckExperiment(planning.experiment));
  if (planning.experiment.plan().strategy() != step::Plan::OPTIMUS) {
    return absl::InvalidArgumentError(absl::StrCat(
        "plan.strategy: is ", step::Plan::Strategy_Name(planning.experiment.plan().strategy()),
        "; only OPTIMUS plans encoders beside the LLM"));
  }
  planning.scheduler = options.scheduler.value_or(planning.experiment.plan().optimus().scheduler());
  OPTIMUS_ASSIGN_OR_RETURN(planning.stack, EncoderStack(planning.experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckSize(planning.experiment, planning.stack));
  OPTIMUS_ASSIGN_OR_RETURN(planning.llms, BuildLlmSteps(planning.experiment, costs));
  OPTIMUS_RETURN_IF_ERROR(CheckSplits(planning.experiment, planning.stack));
  OPTIMUS_ASSIGN_OR_RETURN(
      planning.search,
      SearchPlans(planning.context(costs), planning.llms,
                  {options.exhaustive, planning.IsJudged(options) ? kFinalists : 1}));
  if (planning.IsJudged(options)) {
    OPTIMUS_RETURN_IF_ERROR(AddPaperFinalist(planning.context(costs), planning.llms,
                                             options.exhaustive, planning.search));
  }
  planning.search.plan.planning_seconds = SecondsSince(begin);
  return planning;
}

}  // namespace

absl::StatusOr<OptimusPlan> PlanOptimus(const step::Experiment& experiment,
                                        const hw::ProfileCostModel& costs,
                                        const PlanOptions& options) {
  PlanOptions predicted = options;
  predicted.judge = nullptr;
  OPTIMUS_ASSIGN_OR_RETURN(Planning planning, MakePlanning(experiment, costs, predicted));
  return std::move(planning.search.plan);
}

absl::StatusOr<OptimusStep> BuildOptimusStep(const step::Experiment& experiment,
                                             const hw::ProfileCostModel& costs,
                                             const PlanOptions& options) {
  OPTIMUS_ASSIGN_OR_RETURN(Planning planning, MakePlanning(experiment, costs, options));
  OptimusStep result;
  if (planning.IsJudged(options)) {
    const auto begin = Clock::now();
    OPTIMUS_ASSIGN_OR_RETURN(result.step, JudgeFinalists(planning.context(costs), planning.llms,
                                                         options.judge, planning.search));
    planning.search.plan.judging_seconds = SecondsSince(begin);
  } else {
    const BestPlan& best = planning.search.best.front();
    OPTIMUS_ASSIGN_OR_RETURN(
        result.step, EmitStep(planning.context(costs), std::move(planning.llms[best.llm]), best));
  }
  result.plan = std::move(planning.search.plan);
  return result;
}

}  // namespace optimus::colocate
