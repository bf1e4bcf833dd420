#include "schedule/step/step.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
#include "schedule/step/alpa.h"
#include "schedule/step/check.h"
#include "schedule/step/custom_order.h"
#include "schedule/step/flops.h"
#include "schedule/step/fsdp.h"
#include "schedule/step/layout.h"
#include "schedule/step/limits.h"
#include "schedule/step/lower.h"
#include "schedule/step/make_order.h"
#include "schedule/step/memory.h"
#include "schedule/step/stage_times.h"
#include "schedule/step/virtual_stages.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {
namespace {

// Lowers the plan's warm-up; for BEST both, and keeps the faster by the critical path.
absl::StatusOr<pipeline::Order> LowerWithWarmUp(const hw::ProfileCostModel& costs,
                                                const Placing& placing,
                                                const std::vector<VirtualStage>& virtual_stages,
                                                const Kept& kept, Step& step) {
  const Plan& plan = step.experiment.plan();
  const bool deferred = plan.warm_up() == Plan::DEFERRED;
  const auto times = [&] {
    return OrderTimes{TimesOf(placing, virtual_stages, step.schedule, costs), kept};
  };
  OPTIMUS_ASSIGN_OR_RETURN(
      pipeline::Order order,
      MakeOrder(step.experiment,
                deferred ? pipeline::WarmUp::kDeferred : pipeline::WarmUp::kMegatron, times));
  LowerPipeline(plan, costs, order, virtual_stages, step.schedule);
  if (plan.warm_up() != Plan::BEST) return order;

  OPTIMUS_ASSIGN_OR_RETURN(pipeline::Order other,
                           MakeOrder(step.experiment, pipeline::WarmUp::kDeferred, times));
  ir::Schedule other_schedule = step.schedule;
  LowerPipeline(plan, costs, other, virtual_stages, other_schedule);
  ir::CriticalPathRunner runner(costs);
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline megatron_run, runner.Run(step.schedule));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline deferred_run, runner.Run(other_schedule));
  const bool take_deferred = deferred_run.step < megatron_run.step;  // ties: Megatron's
  step.notes.push_back(
      absl::StrFormat("warm-up: Megatron %.6f s, deferred %.6f s by the critical path; took %s",
                      ToSeconds(megatron_run.step), ToSeconds(deferred_run.step),
                      take_deferred ? "deferred" : "Megatron"));
  if (!take_deferred) return order;
  step.schedule = std::move(other_schedule);
  return other;
}

Flops ModelFlopsOf(const Experiment& experiment, const Stack& stack) {
  Flops sum;
  for (const Module& module : stack.modules) {
    sum +=
        ModuleFlops(module, experiment.batch().global_batch() / experiment.batch().micro_batch());
  }
  return sum;
}

bool GoesBothWays(const Placing& placing) {
  return placing.placement == pipeline::Placement::kBidirectional;
}

ir::Schedule EmptySchedule(const Experiment& experiment, const hw::ProfileCostModel& costs) {
  const Plan& plan = experiment.plan();
  ir::Schedule schedule;
  schedule.name = experiment.name();
  schedule.world = {plan.data_parallel(), plan.pipeline_parallel(), plan.tensor_parallel()};
  schedule.gpus_per_node = costs.gpus_per_node();
  schedule.micro_batches = MicroBatches(experiment);
  return schedule;
}

void DescribeContents(const Placing& placing, const std::function<std::string(int)>& describe,
                      Step& step) {
  for (int v = 0; v < placing.virtual_stages(); ++v) {
    for (const pipeline::Place place : placing.PlacesOf(v)) {
      step.contents.push_back({place.stage, place.chunk, describe(v)});
    }
  }
}

// Two slots that share a stage, with models.
void NoteSharedSlots(const pipeline::Order& order, Step& step) {
  const bool shared = std::any_of(order.slots.begin(), order.slots.end(), [](const auto& slots) {
    return std::any_of(slots.begin(), slots.end(),
                       [](const pipeline::Slot& slot) { return slot.with_next; });
  });
  if (!shared) return;
  step.notes.emplace_back(
      "a forward and a backward that share a stage are issued in turns, each as far as its next "
      "tensor-parallel collective, which so runs under kernels of the other");
}

void NoteActivationLimit(Step& step) {
  const Plan& plan = step.experiment.plan();
  if (plan.activation_limit_gib() == 0) return;
  step.notes.push_back(absl::StrFormat(
      "the order is made for activations of at most %g GiB on every stage, with what weight "
      "gradients wait for (plan.activation_limit_gib), and not for a number of micro-batches",
      plan.activation_limit_gib()));
}

void NoteUnevenLayers(const Stack& stack, const ItemRanges& ranges, Step& step) {
  int fewest = stack.layers();
  int most = 0;
  for (std::size_t v = 0; v + 1 < ranges.size(); ++v) {
    const auto begin = stack.items.begin() + ranges[v];
    const auto end = stack.items.begin() + ranges[v + 1];
    const auto layers = static_cast<int>(
        std::count_if(begin, end, [](const Item& item) { return item.kind == ItemKind::kLayer; }));
    fewest = std::min(fewest, layers);
    most = std::max(most, layers);
  }
  if (fewest == most) return;
  step.notes.push_back(absl::StrCat("uneven: ", stack.layers(), " layers on ", ranges.size() - 1,
                                    " virtual stages, ", fewest, " to ", most, " each"));
}

void NoteSimplifications(const Stack& stack, Step& step) {
  const ir::Parallelism& world = step.schedule.world;
  const bool pipelined = world.pp > 1;
  if (stack.modules.size() > 1) {
    step.notes.emplace_back(
        "the projector pools the encoder's tokens to the LLM's: behind it a message holds "
        "micro_batch * sequence_length tokens");
  }
  if (stack.modules.size() > 2 && pipelined) {
    step.notes.emplace_back(
        "several encoders: passing the first one's output through the stages of the others is not "
        "counted in message sizes");
  }
  if (pipelined && world.tp > 1 && step.experiment.plan().no_sequence_parallel()) {
    step.notes.emplace_back(
        "without sequence parallelism pipeline messages are scattered over the tensor-parallel "
        "ranks; the NVLink all-gather behind them is not modelled");
  }
}

absl::StatusOr<ItemRanges> LayOutWithTimes(const hw::ProfileCostModel& costs, const Stack& stack,
                                           const BlockTable& blocks, const Step& step) {
  const Plan& plan = step.experiment.plan();
  std::vector<Picoseconds> layer_times;
  if (plan.layout() == Plan::BALANCED || plan.layout() == Plan::INTER_OPERATOR) {
    layer_times = LayerTimes(stack, blocks, step.schedule, costs);
    OPTIMUS_RETURN_IF_ERROR(CheckLayerTimes(layer_times));
  }
  if (plan.layout() != Plan::INTER_OPERATOR) return LayOut(plan, stack, layer_times);
  return LayOutInterOperator(step.experiment, stack, layer_times, costs.memory_capacity());
}

absl::Status LowerAsPipeline(const hw::ProfileCostModel& costs, const Stack& stack,
                             const BlockTable& blocks, const ItemRanges& ranges,
                             const Placing& placing, Step& step) {
  const std::vector<VirtualStage> virtual_stages =
      VirtualStagesOf(stack, ranges, placing, blocks, step.schedule);
  OPTIMUS_ASSIGN_OR_RETURN(
      step.order,
      LowerWithWarmUp(costs, placing, virtual_stages,
                      {WeightShare(stack, ranges), MicroBatchBytesByStage(stack, ranges, placing)},
                      step));
  NoteSharedSlots(*step.order, step);
  NoteActivationLimit(step);
  step.memory = MemoryByStage(step.experiment.plan(), stack, ranges, *step.order);
  return absl::OkStatus();
}

void LowerAsFsdp(const hw::ProfileCostModel& costs, const Stack& stack, const BlockTable& blocks,
                 Step& step) {
  const Plan& plan = step.experiment.plan();
  LowerFsdp(plan, stack, blocks, costs, step.schedule);
  step.memory = {FsdpMemory(plan, stack)};
  step.notes.emplace_back(
      "FSDP: every transformer layer is a unit; embedding, projectors and head form the root unit, "
      "which stays gathered from a micro-batch's forward to the end of its backward");
  step.notes.emplace_back(
      "FSDP memory: parameters are the units gathered at the peak; the fp32 shard of all "
      "parameters "
      "is counted as optimizer state");
}

absl::Status BuildFromModels(const hw::ProfileCostModel& costs, Step& step) {
  OPTIMUS_ASSIGN_OR_RETURN(const Stack stack, BuildStack(step.experiment));
  OPTIMUS_ASSIGN_OR_RETURN(const Placing placing, PlacingOf(step.experiment));
  for (const Module& module : stack.modules) {
    step.schedule.modules.push_back({.name = module.name,
                                     .layers = module.config.num_layers(),
                                     .frozen = module.frozen,
                                     .both_directions = GoesBothWays(placing)});
  }
  const BlockTable blocks(stack, step.schedule);
  OPTIMUS_RETURN_IF_ERROR(CheckStepSize(step.experiment, placing, stack, blocks));
  OPTIMUS_ASSIGN_OR_RETURN(const ItemRanges ranges, LayOutWithTimes(costs, stack, blocks, step));
  if (step.experiment.plan().strategy() == Plan::FSDP) {
    LowerAsFsdp(costs, stack, blocks, step);
  } else {
    OPTIMUS_RETURN_IF_ERROR(LowerAsPipeline(costs, stack, blocks, ranges, placing, step));
  }
  step.model_flops = ModelFlopsOf(step.experiment, stack);
  DescribeContents(
      placing, [&](int v) { return DescribeItems(stack, ranges[v], ranges[v + 1]); }, step);
  NoteUnevenLayers(stack, ranges, step);
  NoteSimplifications(stack, step);
  return absl::OkStatus();
}

absl::Status BuildFromProfile(const hw::ProfileCostModel& costs, Step& step) {
  const Plan& plan = step.experiment.plan();
  const ProfiledStages& times = step.experiment.profiled();
  OPTIMUS_ASSIGN_OR_RETURN(const Placing placing, PlacingOf(step.experiment));
  step.schedule.modules.push_back({.name = "profiled",
                                   .layers = placing.virtual_stages(),
                                   .both_directions = GoesBothWays(placing)});
  const int parts = GoesBothWays(placing) ? 1 : plan.model_chunks();
  const ProfiledBlocks blocks = BlocksOf(times, parts, step.schedule);
  OPTIMUS_RETURN_IF_ERROR(CheckStepSize(step.experiment, placing, blocks));
  OPTIMUS_ASSIGN_OR_RETURN(
      step.order,
      LowerWithWarmUp(costs, placing, VirtualStagesOf(times, placing, blocks, step.schedule),
                      {times.has_weight_share() ? times.weight_share() : 1}, step));
  step.memory.resize(plan.pipeline_parallel());
  DescribeContents(
      placing, [](int v) { return absl::StrCat("profiled ", v); }, step);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Step> BuildStep(const Experiment& experiment, const hw::ProfileCostModel& costs) {
  Step step;
  step.experiment = experiment;
  FillDefaults(step.experiment);
  OPTIMUS_RETURN_IF_ERROR(CheckExperiment(step.experiment));
  if (step.experiment.plan().strategy() == Plan::OPTIMUS) {
    return absl::InvalidArgumentError(
        "plan.strategy: OPTIMUS has encoder plans to choose first; build it with "
        "colocate::BuildOptimusStep (the plan command), not as one pipeline");
  }
  step.schedule = EmptySchedule(step.experiment, costs);
  OPTIMUS_RETURN_IF_ERROR(step.experiment.has_profiled() ? BuildFromProfile(costs, step)
                                                         : BuildFromModels(costs, step));
  if (step.experiment.plan().schedule() == Plan::CUSTOM) {
    OPTIMUS_ASSIGN_OR_RETURN(std::string note, CommunicationLeftOut(step.experiment.plan()));
    if (!note.empty()) step.notes.push_back(std::move(note));
  }
  step.hardware_flops = HardwareFlops(step.schedule);
  return step;
}

}  // namespace optimus::step
