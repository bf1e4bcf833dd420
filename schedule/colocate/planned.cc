#include "schedule/colocate/planned.h"

#include <algorithm>

#include "base/status_macros.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/data_parallel.h"
#include "schedule/step/precision.h"

namespace optimus::colocate {
namespace {

std::int64_t TrainedParameters(const step::Plan& plan, const step::StageMemory& memory) {
  return memory.gradients.value() / step::GradientBytes(plan);
}

std::int64_t Share(std::int64_t parameters, std::int64_t shards) {
  return (parameters + shards - 1) / shards;
}

Picoseconds Longest(const std::vector<Kernel>& kernels, const CostModel& costs) {
  Picoseconds longest;
  for (const Kernel& kernel : kernels) longest = std::max(longest, costs.KernelTime(kernel));
  return longest;
}

}  // namespace

absl::StatusOr<PlannedEncoder> PlanEncoder(const EncoderContext& context, int encoder,
                                           const planner::EncoderPlan& plan) {
  OPTIMUS_RETURN_IF_ERROR(CheckPlanFor(context, encoder, plan));
  PlannedEncoder planned;
  planned.encoder = encoder;
  planned.on_gpus.plan = plan;
  planned.on_gpus.micro_batches =
      static_cast<std::int32_t>(MicroBatchesWithInput(context.experiment, encoder).size());
  OPTIMUS_ASSIGN_OR_RETURN(
      planned.on_gpus.stages,
      planner::EncoderMemory(context.experiment.plan(), context.stack, encoder + 1, plan));
  return planned;
}

std::vector<planner::EncoderOnGpus> OnGpus(absl::Span<const PlannedEncoder> encoders) {
  std::vector<planner::EncoderOnGpus> result;
  for (const PlannedEncoder& encoder : encoders) result.push_back(encoder.on_gpus);
  return result;
}

std::vector<Kernel> OptimizerKernels(const EncoderContext& context, const LlmStep& llm,
                                     absl::Span<const PlannedEncoder> encoders) {
  const ir::Parallelism& world = llm.step.schedule.world;
  const step::Plan& its = context.experiment.plan();
  const bool sharded = !its.no_distributed_optimizer();
  std::vector<Kernel> kernels;
  for (int stage = 0; stage < world.pp; ++stage) {
    std::int64_t share =
        Share(TrainedParameters(its, llm.step.memory[stage]), step::OptimizerShards(its));
    for (const PlannedEncoder& encoder : encoders) {
      const planner::EncoderPlan& plan = encoder.plan();
      const step::StageMemory& fixed = encoder.on_gpus.stages[stage % plan.pipeline_parallel].fixed;
      share +=
          Share(TrainedParameters(its, fixed), sharded ? planner::DataParallelOf(plan, world) : 1);
    }
    kernels.push_back(step::OptimizerKernel(context.costs, step::OptimizerTraffic(its, share)));
  }
  return kernels;
}

absl::Status SetEncoders(const EncoderContext& context, const LlmStep& llm,
                         absl::Span<const PlannedEncoder> encoders, ir::Schedule& tables,
                         bubble::Problem& problem) {
  std::int32_t narrowest = tables.world.tp;
  for (const PlannedEncoder& encoder : encoders) {
    narrowest = std::min(narrowest, encoder.plan().tensor_parallel);
  }
  tables.lanes = tables.world.tp / narrowest;
  problem.lanes = tables.lanes;
  problem.tensor_parallel = tables.world.tp;
  problem.encoders.clear();
  for (const PlannedEncoder& encoder : encoders) {
    OPTIMUS_ASSIGN_OR_RETURN(bubble::EncoderWork work,
                             MakeEncoderWork(context, encoder.encoder, encoder.plan(), tables));
    problem.encoders.push_back(std::move(work));
  }
  Picoseconds longer;
  if (!context.experiment.plan().no_optimizer()) {
    longer = Longest(OptimizerKernels(context, llm, encoders), context.costs) -
             Longest(OptimizerKernels(context, llm, {}), context.costs);
  }
  problem.llm.after_reduction = llm.llm.after_reduction + longer;
  problem.llm.step = llm.llm.step + longer;
  return absl::OkStatus();
}

}  // namespace optimus::colocate
