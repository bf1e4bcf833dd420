#include "tools/layer_times.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/status_macros.h"
#include "models/layers.h"
#include "models/zoo.h"

namespace optimus::tools {
namespace {

models::LayerShape ShapeOf(const step::Plan& plan, std::int64_t sequences, std::int64_t length) {
  models::LayerShape shape;
  shape.sequences = sequences;
  shape.sequence_length = length;
  shape.tensor_parallel = plan.tensor_parallel();
  shape.sequence_parallel = !plan.no_sequence_parallel();
  if (plan.unfused_attention()) shape.attention = models::AttentionImplementation::kUnfused;
  shape.fused_elementwise = !plan.unfused_elementwise();
  return shape;
}

Picoseconds Price(const models::BlockOp& op, const CostModel& costs, GroupShape group) {
  if (!op.is_collective) return costs.KernelTime(op.kernel);
  return UncontendedTime(costs, costs.CollectiveCost(op.collective, group));
}

// The block alone on its two streams: an op starts when its stream is free and the ops it names
// have ended.
Picoseconds BlockTime(const models::Block& block, const CostModel& costs, GroupShape group) {
  std::array<Picoseconds, 2> stream_free;
  std::vector<Picoseconds> ends;
  for (const models::BlockOp& op : block.ops) {
    Picoseconds& stream = stream_free[op.is_collective ? 1 : 0];
    for (const int before : op.after) {
      stream = std::max(stream, ends[static_cast<std::size_t>(before)]);
    }
    stream += Price(op, costs, group);
    ends.push_back(stream);
  }
  return std::max(stream_free[0], stream_free[1]);
}

}  // namespace

absl::StatusOr<LayerTimes> MakeLayerTimes(const step::Experiment& experiment,
                                          const hw::ProfileCostModel& costs) {
  if (experiment.encoders_size() == 0) {
    return absl::FailedPreconditionError("the experiment has no encoder");
  }
  const step::Encoder& encoder = experiment.encoders(0);
  const step::Plan& plan = experiment.plan();
  OPTIMUS_ASSIGN_OR_RETURN(const models::ModelConfig vit, models::LoadModel(encoder.model()));
  OPTIMUS_ASSIGN_OR_RETURN(const models::ModelConfig llm, models::LoadModel(experiment.llm()));
  const models::LayerShape slice =
      ShapeOf(plan, encoder.sequences_per_slice(), encoder.sequence_length());
  const models::LayerShape text =
      ShapeOf(plan, experiment.batch().micro_batch(), experiment.batch().sequence_length());
  const GroupShape group{plan.tensor_parallel(),
                         std::min(plan.tensor_parallel(), costs.gpus_per_node())};
  LayerTimes times;
  times.encoder_forward = BlockTime(models::LayerForward(vit, slice), costs, group);
  times.encoder_backward =
      BlockTime(models::LayerBackward(vit, slice, models::Gradients::kBoth), costs, group);
  for (const models::BlockOp& op : models::LayerForward(llm, text).ops) {
    if (!op.is_collective) continue;
    times.llm_collective = std::max(times.llm_collective, Price(op, costs, group));
  }
  return times;
}

}  // namespace optimus::tools
