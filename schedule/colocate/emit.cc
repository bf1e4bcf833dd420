#include "schedule/colocate/emit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedule/colocate/emit_messages.h"
#include "schedule/colocate/lane_emitter.h"
#include "schedule/planner/encoder_stages.h"
#include "schedule/step/flops.h"
#include "schedule/step/work_tables.h"

namespace optimus::colocate {
namespace {

std::vector<std::vector<ir::Span>> SpansByStage(const std::vector<ir::Program>& programs,
                                                const ir::Timeline& timeline) {
  std::vector<std::vector<ir::Span>> spans;
  auto next = timeline.spans.begin();
  for (const ir::Program& program : programs) {
    const auto end = next + static_cast<std::ptrdiff_t>(program.operations.size());
    spans.emplace_back(next, end);
    next = end;
  }
  return spans;
}

// Message ids below this are taken by the LLM, whose messages every lane has for itself.
std::int32_t FirstFreeMessage(const std::vector<ir::Program>& programs, std::int32_t lanes) {
  std::int32_t largest = -1;
  for (const ir::Program& program : programs) {
    for (const ir::Operation& op : program.operations) largest = std::max(largest, op.message);
  }
  return (largest + 1) * lanes;
}

void DeclareModules(const EncoderContext& context, const BestPlan& best, ir::Schedule& schedule) {
  for (std::size_t k = 0; k + 1 < context.stack.modules.size(); ++k) {
    for (const PlannedEncoder& encoder : best.encoders) {
      if (encoder.encoder != static_cast<int>(k)) continue;
      const step::Module& module = context.stack.modules[k + 1];
      ir::ModuleInfo info;
      info.name = module.name;
      info.layers = module.config.num_layers();
      info.frozen = module.frozen;
      info.pipelines = planner::PipelinesOf(encoder.plan(), schedule.world);
      info.tensor_parallel = encoder.plan().tensor_parallel;
      const auto& without =
          context.experiment.encoders(static_cast<int>(k)).micro_batches_without_input();
      info.skipped_micro_batches.assign(without.begin(), without.end());
      schedule.modules.push_back(std::move(info));
    }
  }
}

// Of the encoders; micro-batches without input have none.
Flops EncoderModelFlops(const EncoderContext& context, const BestPlan& best) {
  Flops sum;
  const std::int64_t replicas = context.experiment.plan().data_parallel();
  for (const PlannedEncoder& encoder : best.encoders) {
    const step::Module& module = context.stack.modules[encoder.encoder + 1];
    sum += step::ModuleFlops(module, replicas * encoder.on_gpus.micro_batches);
  }
  return sum;
}

// Encoder layers ride along with the stage's first chunk.
absl::Status DescribeContents(const EncoderContext& context, const BestPlan& best,
                              step::Step& step) {
  for (const PlannedEncoder& encoder : best.encoders) {
    OPTIMUS_ASSIGN_OR_RETURN(
        const step::ItemRanges ranges,
        planner::EncoderStages(context.stack, encoder.encoder + 1, encoder.plan()));
    for (step::StageContents& contents : step.contents) {
      if (contents.chunk != 0) continue;
      const int p = contents.stage % encoder.plan().pipeline_parallel;
      contents.layers = absl::StrCat(step::DescribeItems(context.stack, ranges[p], ranges[p + 1]),
                                     ", ", contents.layers);
    }
  }
  return absl::OkStatus();
}

void NotePlans(const EncoderContext& context, const BestPlan& best, step::Step& step) {
  for (std::size_t e = 0; e < best.encoders.size(); ++e) {
    const PlannedEncoder& encoder = best.encoders[e];
    const std::int32_t layers = context.stack.modules[encoder.encoder + 1].config.num_layers();
    const bool uneven = layers % encoder.plan().pipeline_parallel != 0;
    step.notes.push_back(absl::StrCat(
        context.stack.modules[encoder.encoder + 1].name, ": ", planner::ToString(encoder.plan()),
        ", ", planner::PipelinesOf(encoder.plan(), step.schedule.world),
        " encoder pipelines beside every LLM pipeline, micro-batches ",
        absl::StrJoin(best.result.encoders[e].split, ","),
        uneven ? absl::StrCat("; uneven: ", layers, " layers, the first stages hold one more")
               : ""));
  }
  if (best.encoders.size() > 1) {
    step.notes.emplace_back(
        "several encoders: planned one after the other, the largest first; not every combination "
        "of their plans was tried");
  }
}

void NoteAssumptions(const EncoderContext& context, const BestPlan& best, step::Step& step) {
  const step::Plan& plan = context.experiment.plan();
  step.notes.emplace_back(
      "the order in which encoder outputs are finished decides which micro-batch of the LLM they "
      "become; gradients go back to where the output came from");
  step.notes.emplace_back(
      "the projector pools the encoder's tokens to the LLM's: behind it a message holds "
      "micro_batch * sequence_length tokens");
  step.notes.emplace_back(
      "encoder activations are counted as if a pipeline held all of its micro-batches at once");
  const auto kind = plan.optimus().encoder_data_parallel();
  const bool alone =
      std::all_of(best.encoders.begin(), best.encoders.end(), [&](const PlannedEncoder& encoder) {
        return planner::DataParallelOf(encoder.plan(), step.schedule.world) == 1;
      });
  if (alone || plan.no_optimizer()) return;
  if (kind == step::Optimus::ENCODER_DP_NONE) {
    step.notes.emplace_back("the encoders' own data-parallel communication is left out");
  } else {
    step.notes.push_back(absl::StrCat(
        "encoder parameters are gathered before the LLM's and encoder gradients reduced after the "
        "LLM's, ",
        kind == step::Optimus::ENCODER_DP_EXPOSED ? "all layers at once" : "layer by layer"));
  }
}

// Kernels of the optimizer step on all parameters of each stage, interned.
std::vector<std::int32_t> InternOptimizer(const EncoderContext& context, const LlmStep& llm,
                                          const BestPlan& best, ir::Schedule& schedule) {
  std::vector<std::int32_t> kernels;
  if (context.experiment.plan().no_optimizer()) return kernels;
  for (const Kernel& kernel : OptimizerKernels(context, llm, best.encoders)) {
    kernels.push_back(step::Intern(schedule.kernels, kernel));
  }
  return kernels;
}

std::vector<step::StageMemory> MemoryOf(const LlmStep& llm, const BestPlan& best,
                                        std::int32_t tensor_parallel) {
  std::vector<planner::Split> splits;
  for (const bubble::PlacedEncoder& encoder : best.result.encoders) splits.push_back(encoder.split);
  return planner::MemoryWithEncoders(llm.step.memory, tensor_parallel, OnGpus(best.encoders),
                                     splits);
}

}  // namespace

absl::StatusOr<step::Step> EmitStep(const EncoderContext& context, LlmStep llm,
                                    const BestPlan& best) {
  const std::vector<ir::Program> programs = std::move(llm.step.schedule.programs);
  llm.step.schedule.programs.clear();
  ir::Schedule schedule = llm.step.schedule;
  schedule.name = context.experiment.name();
  bubble::Problem problem;
  problem.llm = llm.llm;
  OPTIMUS_RETURN_IF_ERROR(SetEncoders(context, llm, best.encoders, schedule, problem));
  DeclareModules(context, best, schedule);
  const std::vector<Message> messages = MessagesOf(context, problem, best.result, schedule);
  const std::vector<std::vector<ir::Span>> spans = SpansByStage(programs, llm.timeline);
  const EmitInput input = {schedule,
                           programs,
                           spans,
                           problem,
                           best.result,
                           messages,
                           FirstFreeMessage(programs, schedule.lanes),
                           InternOptimizer(context, llm, best, schedule)};
  std::vector<ir::Program> emitted;
  for (std::int32_t stage = 0; stage < schedule.world.pp; ++stage) {
    for (std::int32_t lane = 0; lane < schedule.lanes; ++lane) {
      emitted.push_back(LaneEmitter(input, stage, lane).Emit());
    }
  }
  schedule.programs = std::move(emitted);

  step::Step step;
  step.experiment = context.experiment;
  step.model_flops = llm.step.model_flops + EncoderModelFlops(context, best);
  step.hardware_flops = step::HardwareFlops(schedule);
  step.memory = MemoryOf(llm, best, schedule.world.tp);
  step.contents = std::move(llm.step.contents);
  step.notes = std::move(llm.step.notes);
  step.schedule = std::move(schedule);
  OPTIMUS_RETURN_IF_ERROR(DescribeContents(context, best, step));
  NotePlans(context, best, step);
  NoteAssumptions(context, best, step);
  return step;
}

}  // namespace optimus::colocate
