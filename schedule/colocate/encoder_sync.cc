// Data-parallel communication of one encoder.

#include <algorithm>

#include "models/accounting.h"
#include "schedule/colocate/encoder_work.h"
#include "schedule/ir/critical_path.h"
#include "schedule/planner/encoder_stages.h"
#include "schedule/step/precision.h"
#include "schedule/step/work_tables.h"

namespace optimus::colocate {
namespace {

using Bucket = bubble::EncoderSync::Bucket;

// Trained parameters on one GPU that are gathered and reduced together.
struct Part {
  std::int16_t first_layer = 0, last_layer = 0;
  std::int64_t parameters = 0;
};

// Of one encoder stage, in order of layers: one part a layer, the projector with the last one.
std::vector<Part> PartsOf(const EncoderContext& context, const step::Module& module, int begin,
                          int end) {
  const int tp = module.whole.tensor_parallel;
  std::vector<Part> parts;
  for (int i = begin; i < end; ++i) {
    const step::Item& item = context.stack.items[i];
    if (!step::IsTrained(context.stack, item)) continue;
    if (item.kind == step::ItemKind::kLayer) {
      const auto layer = static_cast<std::int16_t>(item.layer);
      parts.push_back({layer, layer, models::LayerParametersPerGpu(module.config, tp)});
      continue;
    }
    const std::int64_t projector = models::ProjectorParametersPerGpu(
        module.config, context.stack.modules[0].config.hidden_size(), tp);
    if (parts.empty()) parts.push_back({ir::kProjectorLayer, ir::kProjectorLayer, 0});
    parts.back().last_layer = ir::kProjectorLayer;
    parts.back().parameters += projector;
  }
  return parts;
}

std::vector<Part> Joined(const std::vector<Part>& parts) {
  if (parts.empty()) return {};
  Part all = {parts.front().first_layer, parts.back().last_layer, 0};
  for (const Part& part : parts) all.parameters += part.parameters;
  return {all};
}

class SyncWriter {
 public:
  SyncWriter(const CostModel& costs, const ir::Group& group, ir::Schedule& tables)
      : costs_(costs),
        tables_(tables),
        group_(step::Intern(tables.groups, group)),
        shape_(ir::ShapeOf(tables, group)) {}

  std::vector<Bucket> Buckets(const std::vector<Part>& parts, CollectiveKind kind, const char* name,
                              int bytes_per_parameter) {
    std::vector<Bucket> buckets;
    for (const Part& part : parts) {
      const CollectiveWork work = {kind, name, Bytes(part.parameters * bytes_per_parameter)};
      buckets.push_back({part.first_layer, part.last_layer,
                         UncontendedTime(costs_, costs_.CollectiveCost(work, shape_)),
                         step::Intern(tables_.collectives, ir::Collective{work, group_})});
    }
    return buckets;
  }

 private:
  const CostModel& costs_;
  ir::Schedule& tables_;
  std::int32_t group_;
  GroupShape shape_;
};

}  // namespace

ir::Group EncoderTensorGroup(const std::string& name, const planner::EncoderPlan& plan,
                             const ir::Parallelism& world) {
  if (plan.tensor_parallel == world.tp) return step::TensorParallelGroup();
  return {.name = name + " tp", .over_tp = true, .tp_block = plan.tensor_parallel};
}

ir::Group EncoderDataGroup(const std::string& name, const planner::EncoderPlan& plan,
                           const ir::Parallelism& world) {
  ir::Group group = {.name = name + " dp", .over_dp = true};
  group.over_pp = plan.pipeline_parallel < world.pp;
  group.over_tp = plan.tensor_parallel < world.tp;
  // A stride of 1 would narrow nothing.
  if (group.over_pp && plan.pipeline_parallel > 1) group.pp_stride = plan.pipeline_parallel;
  if (group.over_tp && plan.tensor_parallel > 1) group.tp_stride = plan.tensor_parallel;
  return group;
}

bubble::EncoderSync MakeEncoderSync(const EncoderContext& context, int encoder,
                                    const planner::EncoderPlan& plan,
                                    const step::ItemRanges& stages, ir::Schedule& tables) {
  bubble::EncoderSync sync;
  sync.gathers.resize(plan.pipeline_parallel);
  sync.reductions.resize(plan.pipeline_parallel);
  const step::Plan& llm = context.experiment.plan();
  const auto kind = llm.optimus().encoder_data_parallel();
  if (llm.no_optimizer() || kind == step::Optimus::ENCODER_DP_NONE ||
      planner::DataParallelOf(plan, tables.world) == 1) {
    return sync;
  }
  const step::Module module = planner::UnderPlan(context.stack.modules[encoder + 1], plan);
  SyncWriter writer(context.costs, EncoderDataGroup(module.name, plan, tables.world), tables);
  const bool all_reduce = llm.no_distributed_optimizer();
  for (int p = 0; p < plan.pipeline_parallel; ++p) {
    std::vector<Part> parts = PartsOf(context, module, stages[p], stages[p + 1]);
    if (kind == step::Optimus::ENCODER_DP_EXPOSED) parts = Joined(parts);
    if (!all_reduce) {
      sync.gathers[p] = writer.Buckets(parts, CollectiveKind::kAllGather, "parameter_all_gather",
                                       step::kParameterBytes);
    }
    std::reverse(parts.begin(), parts.end());
    sync.reductions[p] = writer.Buckets(
        parts, all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
        all_reduce ? "gradient_all_reduce" : "gradient_reduce_scatter", step::GradientBytes(llm));
  }
  return sync;
}

}  // namespace optimus::colocate
