#include "schedule/colocate/encoder_work.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "models/accounting.h"
#include "models/layers.h"
#include "schedule/colocate/messages.h"
#include "schedule/colocate/stage_work_builder.h"
#include "schedule/ir/critical_path.h"
#include "schedule/planner/encoder_stages.h"
#include "schedule/step/check.h"

namespace optimus::colocate {
namespace {

// The blocks of one encoder under one plan.
struct EncoderBlocks {
  PricedBlock layer_forward, layer_backward, projector_forward, projector_backward;
};

EncoderBlocks MakeBlocks(const EncoderContext& context, const step::Module& module,
                         const planner::EncoderPlan& plan, ir::Schedule& tables) {
  const ir::Group group = EncoderTensorGroup(module.name, plan, tables.world);
  const auto price = [&](const models::Block& block) {
    return PriceBlock(block, group, context.costs, tables);
  };
  const std::int64_t llm_hidden = context.stack.modules[0].config.hidden_size();
  // Nothing behind a frozen encoder's output wants its gradient.
  const models::Gradients projector_gradients =
      module.frozen ? models::Gradients::kWeights : models::Gradients::kBoth;
  EncoderBlocks blocks;
  blocks.layer_forward = price(models::LayerForward(module.config, module.slice));
  blocks.projector_forward =
      price(models::ProjectorForward(module.config, llm_hidden, module.whole));
  if (!module.frozen) {
    blocks.layer_backward =
        price(models::LayerBackward(module.config, module.slice, models::Gradients::kBoth));
  }
  blocks.projector_backward = price(
      models::ProjectorBackward(module.config, llm_hidden, module.whole, projector_gradients));
  return blocks;
}

// Writes the two directions of every encoder stage.
class WorkWriter {
 public:
  WorkWriter(const EncoderContext& context, const step::Module& module, const EncoderBlocks& blocks)
      : items_(context.stack.items),
        blocks_(blocks),
        slices_(module.slices),
        frozen_(module.frozen),
        by_slice_(context.scheduler == step::Optimus::LIST) {}

  bubble::StageWork Forward(int begin, int end, bool first_stage) const {
    StageWorkBuilder builder(slices_, by_slice_);
    builder.SetInputParts(first_stage ? 0 : parts());
    for (int i = begin; i < end; ++i) {
      if (items_[i].kind == step::ItemKind::kProjector) {
        builder.AppendForAll(blocks_.projector_forward, ir::kProjectorLayer);
        continue;
      }
      for (int slice = 0; slice < slices_; ++slice) {
        builder.Append(blocks_.layer_forward, static_cast<std::int16_t>(items_[i].layer), slice);
      }
    }
    return std::move(builder).Finish();
  }

  bubble::StageWork Backward(int begin, int end) const {
    const bool last_stage = items_[end - 1].kind == step::ItemKind::kProjector;
    StageWorkBuilder builder(slices_, by_slice_);
    builder.SetInputParts(last_stage ? 1 : parts());
    for (int i = end - 1; i >= begin; --i) {
      if (items_[i].kind == step::ItemKind::kProjector) {
        builder.AppendForAll(blocks_.projector_backward, ir::kProjectorLayer);
        continue;
      }
      if (frozen_) continue;
      for (int slice = slices_ - 1; slice >= 0; --slice) {
        builder.Append(blocks_.layer_backward, static_cast<std::int16_t>(items_[i].layer), slice);
      }
    }
    return std::move(builder).Finish();
  }

  int parts() const { return by_slice_ ? slices_ : 1; }

 private:
  const std::vector<step::Item>& items_;
  const EncoderBlocks& blocks_;
  int slices_;
  bool frozen_, by_slice_;
};

Bytes DivideRoundingUp(Bytes bytes, std::int64_t by) {
  return Bytes((bytes.value() + by - 1) / by);
}

}  // namespace

Bytes HopBytes(const step::Stack& stack, const step::Module& module, int parts) {
  step::Stack cut;
  cut.modules = {stack.modules[0], module};
  const Bytes whole = step::BoundaryBytes(cut, {step::ItemKind::kLayer, 1, 0});
  return DivideRoundingUp(whole, parts);
}

Bytes OutputBytes(const step::Stack& stack) {
  return step::BoundaryBytes(stack, {step::ItemKind::kProjector, 1, 0});
}

namespace {

void PriceMessages(const EncoderContext& context, const step::Module& module, int parts,
                   const ir::Schedule& tables, bubble::EncoderWork& work) {
  const planner::EncoderPlan& plan = work.plan;
  const int stages = plan.pipeline_parallel;
  const Bytes part = HopBytes(context.stack, module, parts);
  for (int first = 0; first < tables.world.pp; first += stages) {
    for (int stage = first; stage + 1 < first + stages; ++stage) {
      Picoseconds forward, backward;
      for (int lane = 0; lane < tables.lanes; ++lane) {
        forward = std::max(forward,
                           MessageTime(tables, context.costs, part, stage, lane, stage + 1, lane));
        backward = std::max(backward,
                            MessageTime(tables, context.costs, part, stage + 1, lane, stage, lane));
      }
      work.forward_hop.push_back(forward);
      work.backward_hop.push_back(backward);
    }
  }
  const Bytes output = OutputBytes(context.stack);
  const std::int32_t pipelines = planner::PipelinesOf(plan, tables.world);
  for (std::int32_t j = 0; j < pipelines; ++j) {
    work.to_llm.push_back(TimeToLlm(tables, context.costs, plan, j, output));
    work.from_llm.push_back(TimeFromLlm(tables, context.costs, plan, j, output));
  }
}

}  // namespace

absl::StatusOr<step::Stack> EncoderStack(const step::Experiment& experiment) {
  step::Experiment whole = experiment;
  whole.mutable_plan()->set_tensor_parallel(1);
  OPTIMUS_ASSIGN_OR_RETURN(step::Stack stack, step::BuildStack(whole));
  const int tp = experiment.plan().tensor_parallel();
  stack.modules[0] = planner::UnderPlan(stack.modules[0], {1, tp});
  return stack;
}

std::vector<std::int32_t> MicroBatchesWithInput(const step::Experiment& experiment, int encoder) {
  const auto& without = experiment.encoders(encoder).micro_batches_without_input();
  std::vector<std::int32_t> with;
  for (std::int32_t i = 0; i < step::MicroBatches(experiment); ++i) {
    if (std::find(without.begin(), without.end(), i) == without.end()) with.push_back(i);
  }
  return with;
}

absl::Status CheckPlanFor(const EncoderContext& context, int encoder,
                          const planner::EncoderPlan& plan) {
  const step::Module module = planner::UnderPlan(context.stack.modules[encoder + 1], plan);
  const step::Plan& llm = context.experiment.plan();
  OPTIMUS_RETURN_IF_ERROR(planner::ValidatePlanFor(
      plan, {llm.data_parallel(), llm.pipeline_parallel(), llm.tensor_parallel()}, module.config));
  OPTIMUS_RETURN_IF_ERROR(models::ValidateShape(module.config, module.slice));
  return models::ValidateShape(module.config, module.whole);
}

absl::StatusOr<bubble::EncoderWork> MakeEncoderWork(const EncoderContext& context, int encoder,
                                                    const planner::EncoderPlan& plan,
                                                    ir::Schedule& tables) {
  const step::Module module = planner::UnderPlan(context.stack.modules[encoder + 1], plan);
  OPTIMUS_ASSIGN_OR_RETURN(const step::ItemRanges stages,
                           planner::EncoderStages(context.stack, encoder + 1, plan));
  bubble::EncoderWork work;
  work.encoder = encoder;
  work.plan = plan;
  work.frozen = module.frozen;
  work.micro_batches = MicroBatchesWithInput(context.experiment, encoder);
  const EncoderBlocks blocks = MakeBlocks(context, module, plan, tables);
  const WorkWriter writer(context, module, blocks);
  for (int p = 0; p < plan.pipeline_parallel; ++p) {
    work.forward.push_back(writer.Forward(stages[p], stages[p + 1], p == 0));
    work.backward.push_back(writer.Backward(stages[p], stages[p + 1]));
  }
  PriceMessages(context, module, writer.parts(), tables, work);
  work.sync = MakeEncoderSync(context, encoder, plan, stages, tables);
  return work;
}

}  // namespace optimus::colocate
