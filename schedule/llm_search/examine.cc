#include "schedule/llm_search/examine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/colocate/planned.h"
#include "schedule/step/check.h"
#include "schedule/step/check_strategy.h"
#include "schedule/step/layout.h"
#include "schedule/step/limits.h"
#include "schedule/step/make_order.h"
#include "schedule/step/memory.h"

namespace optimus::llm_search {
namespace {

bool IsOptimus(const step::Experiment& experiment) {
  return experiment.plan().strategy() == step::Plan::OPTIMUS;
}

ir::Parallelism WorldOf(const step::Experiment& experiment) {
  const step::Plan& plan = experiment.plan();
  return {plan.data_parallel(), plan.pipeline_parallel(), plan.tensor_parallel()};
}

// The orders that the pipeline may get.
std::vector<pipeline::WarmUp> WarmUps(const step::Plan& plan) {
  switch (plan.warm_up()) {
    case step::Plan::BEST:
      return {pipeline::WarmUp::kMegatron, pipeline::WarmUp::kDeferred};
    case step::Plan::DEFERRED:
      return {pipeline::WarmUp::kDeferred};
    default:
      return {pipeline::WarmUp::kMegatron};
  }
}

absl::StatusOr<std::vector<std::vector<step::StageMemory>>> MemoryByWarmUp(
    const step::Experiment& experiment, const step::Stack& stack, const step::ItemRanges& ranges) {
  std::vector<std::vector<step::StageMemory>> memory;
  for (const pipeline::WarmUp warm_up : WarmUps(experiment.plan())) {
    OPTIMUS_ASSIGN_OR_RETURN(const pipeline::Order order, step::MakeOrder(experiment, warm_up, [] {
                               return step::OrderTimes();
                             }));
    memory.push_back(step::MemoryByStage(experiment.plan(), stack, ranges, order));
  }
  return memory;
}

}  // namespace

// A stack, and its work with prices, whatever DP, PP and V are.
struct Examiner::Tables {
  step::Stack stack;
  ir::Schedule schedule;  // world of the first candidate
  std::unique_ptr<step::BlockTable> blocks;
  WorkTimes times;
  std::vector<Picoseconds> layer_times;
};

struct Examiner::PlannedEncoders {
  std::vector<EncoderPlans> plans;  // by encoder
};

Examiner::Examiner(step::Experiment base, const hw::ProfileCostModel& costs)
    : base_(std::move(base)), costs_(costs) {
  for (const step::Hardware::SlowGpu& slow : base_.hardware().slow_gpus()) {
    if (slow.factor() > 0) kernel_factor_ = std::min(kernel_factor_, slow.factor());
  }
}

Examiner::~Examiner() = default;

// What step::CompleteExperiment checks, but for profile and models, which are the same for all.
absl::Status Examiner::Check(step::Experiment& experiment) const {
  step::FillDefaults(experiment);
  OPTIMUS_RETURN_IF_ERROR(step::CheckExperiment(experiment));
  return step::CheckOrder(experiment);
}

Examined Examiner::Examine(const Candidate& candidate) {
  Examined examined;
  examined.experiment = Apply(base_, candidate);
  absl::Status status = Check(examined.experiment);
  if (status.ok()) status = Weigh(examined);
  if (!status.ok()) {
    examined.verdict = Examined::Verdict::kImpossible;
    examined.reason = std::string(status.message());
  }
  return examined;
}

absl::Status Examiner::Weigh(Examined& examined) {
  const step::Experiment& whole = examined.experiment;
  const step::Experiment alone = IsOptimus(whole) ? step::LlmAlone(whole) : whole;
  OPTIMUS_ASSIGN_OR_RETURN(const Tables* tables, TablesOf(alone));
  OPTIMUS_ASSIGN_OR_RETURN(const step::Placing placing, step::PlacingOf(alone));
  OPTIMUS_RETURN_IF_ERROR(step::CheckStepSize(alone, placing, tables->stack, *tables->blocks));
  OPTIMUS_ASSIGN_OR_RETURN(const step::ItemRanges ranges,
                           step::LayOut(alone.plan(), tables->stack, tables->layer_times));
  OPTIMUS_ASSIGN_OR_RETURN(const auto memory, MemoryByWarmUp(alone, tables->stack, ranges));
  PlannedEncoders encoders;
  if (IsOptimus(whole)) {
    OPTIMUS_ASSIGN_OR_RETURN(encoders, PlanEncoders(whole));
  }
  const MemoryNeed need = NeedOf(memory, WorldOf(whole), encoders.plans, costs_.memory_capacity());
  examined.memory = need.least;
  examined.verdict = need.fits ? Examined::Verdict::kBounded : Examined::Verdict::kTooLarge;
  if (!need.fits) return absl::OkStatus();
  return Bound(whole, alone, *tables, ranges, need, examined.bounds);
}

absl::StatusOr<Examiner::Tables*> Examiner::TablesOf(const step::Experiment& experiment) {
  const step::Plan& plan = experiment.plan();
  const StackKey key{experiment.encoders_size(), plan.tensor_parallel(),
                     experiment.batch().micro_batch(), plan.recompute()};
  std::unique_ptr<Tables>& entry = tables_[key];
  if (entry != nullptr) return entry.get();
  auto tables = std::make_unique<Tables>();
  OPTIMUS_ASSIGN_OR_RETURN(tables->stack, step::BuildStack(experiment));
  tables->schedule.world = WorldOf(experiment);
  tables->schedule.gpus_per_node = costs_.gpus_per_node();
  tables->blocks = std::make_unique<step::BlockTable>(tables->stack, tables->schedule);
  tables->times = PriceWork(tables->schedule, costs_, kernel_factor_);
  tables->layer_times = step::LayerTimes(tables->stack, *tables->blocks, tables->schedule, costs_);
  OPTIMUS_RETURN_IF_ERROR(step::CheckLayerTimes(tables->layer_times));
  entry = std::move(tables);
  return entry.get();
}

absl::StatusOr<const step::Stack*> Examiner::EncoderStackOf(const step::Experiment& experiment) {
  const StackKey key{0, 0, experiment.batch().micro_batch(), experiment.plan().recompute()};
  const auto found = encoder_stacks_.find(key);
  if (found != encoder_stacks_.end()) return &found->second;
  OPTIMUS_ASSIGN_OR_RETURN(step::Stack stack, colocate::EncoderStack(experiment));
  return &encoder_stacks_.emplace(key, std::move(stack)).first->second;
}

// Every plan of every encoder that suits it; an error where an encoder has none.
absl::StatusOr<Examiner::PlannedEncoders> Examiner::PlanEncoders(
    const step::Experiment& experiment) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Stack* stack, EncoderStackOf(experiment));
  const colocate::EncoderContext context{experiment, *stack, costs_,
                                         experiment.plan().optimus().scheduler()};
  PlannedEncoders encoders;
  for (int e = 0; e < experiment.encoders_size(); ++e) {
    EncoderPlans& plans = encoders.plans.emplace_back();
    absl::Status last;
    for (const planner::EncoderPlan& plan : planner::EnumeratePlans(WorldOf(experiment))) {
      absl::StatusOr<colocate::PlannedEncoder> planned = colocate::PlanEncoder(context, e, plan);
      if (planned.ok()) {
        plans.push_back(std::move(planned->on_gpus));
      } else {
        last = planned.status();
      }
    }
    if (plans.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("plan.optimus: no encoder plan suits ",
                                                     stack->modules[e + 1].name, ": ",
                                                     std::string(last.message())));
    }
  }
  return encoders;
}

absl::StatusOr<EncoderFloor> Examiner::FloorFor(const colocate::EncoderContext& context,
                                                int encoder, const planner::EncoderPlan& plan,
                                                const ir::Schedule& tables) {
  const FloorKey key{plan.tensor_parallel,
                     plan.pipeline_parallel,
                     tables.world.tp,
                     context.experiment.batch().micro_batch(),
                     context.experiment.plan().recompute(),
                     encoder};
  const auto found = floors_.find(key);
  if (found != floors_.end()) return found->second;
  OPTIMUS_ASSIGN_OR_RETURN(const EncoderFloor floor,
                           FloorOf(context, encoder, plan, tables, kernel_factor_));
  floors_.emplace(key, floor);
  return floor;
}

absl::Status Examiner::Bound(const step::Experiment& whole, const step::Experiment& alone,
                             const Tables& tables, const step::ItemRanges& ranges,
                             const MemoryNeed& need, Bounds& bounds) {
  ir::Schedule schedule = tables.schedule;
  schedule.world = WorldOf(whole);
  OPTIMUS_ASSIGN_OR_RETURN(const step::Placing placing, step::PlacingOf(alone));
  Surroundings around;
  Picoseconds gpu_time;  // of the encoders, one micro-batch
  for (std::size_t e = 0; e < need.plans.size(); ++e) {
    OPTIMUS_ASSIGN_OR_RETURN(const step::Stack* stack, EncoderStackOf(whole));
    const colocate::EncoderContext context{whole, *stack, costs_,
                                           whole.plan().optimus().scheduler()};
    std::vector<EncoderFloor> floors;
    for (const planner::EncoderPlan& plan : need.plans[e]) {
      OPTIMUS_ASSIGN_OR_RETURN(const EncoderFloor floor,
                               FloorFor(context, static_cast<int>(e), plan, schedule));
      floors.push_back(floor);
    }
    const EncoderFloor least = Least(floors);
    around.before = std::max(around.before, least.forward);
    around.behind = std::max(around.behind, least.backward);
    gpu_time += least.gpu_time;
  }
  const std::vector<step::VirtualStage> stages =
      step::VirtualStagesOf(tables.stack, ranges, placing, *tables.blocks, schedule);
  const std::int32_t micro_batches = step::MicroBatches(whole);
  const PipelineBound bound = BoundPipeline(
      {alone.plan(), costs_, schedule, tables.times, stages, placing, micro_batches}, around);
  bounds.pipeline = bound.step;
  const Picoseconds::rep gpus = Picoseconds::rep{schedule.world.pp} * schedule.world.tp;
  bounds.work = bound.compute +
                Picoseconds(Picoseconds::rep{micro_batches} * gpu_time.value() / gpus) + bound.tail;
  return absl::OkStatus();
}

}  // namespace optimus::llm_search
