#include "schedule/planner/memory.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/accounting.h"
#include "schedule/planner/encoder_stages.h"
#include "schedule/step/memory.h"
#include "schedule/step/parameters.h"

namespace optimus::planner {
namespace {

constexpr int kActivationBytes = 2;  // bf16

// As in Megatron-LM's global buffer: one layer input of all ranks' tokens.
Bytes GatheredInput(const step::Module& module) {
  if (!module.slice.sequence_parallel || module.slice.tensor_parallel == 1) return Bytes(0);
  return Bytes(module.slice.tokens() * module.config.hidden_size() * kActivationBytes);
}

Bytes RecomputeWorkspace(const step::Module& module) {
  if (module.frozen) return Bytes(0);
  return models::LayerRecomputeWorkspaceBytes(module.config, module.slice);
}

// A micro-batch on its way to the LLM: its tokens and width, on TP_enc ranks.
Bytes OutputBytes(const step::Module& llm, const step::Module& encoder) {
  const std::int64_t tp = encoder.whole.tensor_parallel;
  const std::int64_t bytes =
      llm.whole.tokens() * llm.config.hidden_size() * std::int64_t{kActivationBytes};
  return Bytes((bytes + tp - 1) / tp);
}

// One buffer for each message of the stage. Layers of a frozen encoder send nothing back.
Bytes MessageBuffers(const step::Stack& stack, const step::ItemRanges& ranges, int module,
                     int stage) {
  const step::Module& encoder = stack.modules[module];
  const bool first = stage == 0;
  const bool last = stage + 2 == static_cast<int>(ranges.size());
  const int inside_ways = encoder.frozen ? 1 : 2;
  Bytes sum;
  if (!first) sum += inside_ways * step::BoundaryBytes(stack, stack.items[ranges[stage] - 1]);
  if (last) {
    sum += 2 * OutputBytes(stack.modules[0], encoder);
  } else {
    sum += inside_ways * step::BoundaryBytes(stack, stack.items[ranges[stage + 1] - 1]);
  }
  return sum;
}

// On tensor-parallel rank t of an LLM stage: which stage of the encoder, and which pipeline.
struct Place {
  std::int32_t stage = 0, pipeline = 0;
};
Place PlaceOn(const EncoderPlan& plan, std::int32_t llm_tensor_parallel, std::int32_t llm_stage,
              std::int32_t rank) {
  const std::int32_t subgroups = llm_tensor_parallel / plan.tensor_parallel;
  return {llm_stage % plan.pipeline_parallel,
          llm_stage / plan.pipeline_parallel * subgroups + rank / plan.tensor_parallel};
}

std::int32_t PipelinesOn(const EncoderOnGpus& encoder, std::size_t llm_stages,
                         std::int32_t llm_tensor_parallel) {
  return static_cast<std::int32_t>(llm_stages) / encoder.plan.pipeline_parallel *
         (llm_tensor_parallel / encoder.plan.tensor_parallel);
}

// Of `encoder`, the most micro-batches that fit into what `used` (with none of them) leaves.
std::int32_t MostOf(const EncoderOnGpus& encoder, const std::vector<step::StageMemory>& used,
                    Bytes capacity) {
  std::int64_t most = encoder.micro_batches;
  for (std::size_t s = 0; s < used.size(); ++s) {
    const std::int64_t each =
        encoder.stages[s % encoder.stages.size()].activations_per_micro_batch.value();
    if (each > 0) most = std::min(most, (capacity - used[s].total()).value() / each);
  }
  return static_cast<std::int32_t>(most);
}

}  // namespace

absl::StatusOr<std::vector<EncoderStageMemory>> EncoderMemory(const step::Plan& llm,
                                                              const step::Stack& stack, int module,
                                                              const EncoderPlan& plan) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::ItemRanges ranges, EncoderStages(stack, module, plan));
  step::Stack cut = stack;
  cut.modules[module] = UnderPlan(stack.modules[module], plan);
  const std::vector<step::ChunkParameters> parameters =
      step::CountChunkParameters(cut, ranges, {.stages = plan.pipeline_parallel});
  const std::int64_t shards =
      llm.no_distributed_optimizer()
          ? 1
          : DataParallelOf(plan,
                           {llm.data_parallel(), llm.pipeline_parallel(), llm.tensor_parallel()});
  std::vector<EncoderStageMemory> result(plan.pipeline_parallel);
  for (std::int32_t p = 0; p < plan.pipeline_parallel; ++p) {
    step::StageMemory& fixed = result[p].fixed;
    fixed = step::StateMemory(llm, parameters[p].all, parameters[p].trained, shards);
    fixed.workspace = RecomputeWorkspace(cut.modules[module]) + GatheredInput(cut.modules[module]) +
                      MessageBuffers(cut, ranges, module, p);
    result[p].activations_per_micro_batch = step::ActivationBytes(cut, ranges[p], ranges[p + 1]);
  }
  return result;
}

step::StageMemory Sum(const step::StageMemory& a, const step::StageMemory& b) {
  return {a.parameters + b.parameters, a.gradients + b.gradients,
          a.optimizer_state + b.optimizer_state, a.activations + b.activations,
          a.workspace + b.workspace};
}

std::vector<step::StageMemory> MemoryWithEncoders(absl::Span<const step::StageMemory> llm_stages,
                                                  std::int32_t llm_tensor_parallel,
                                                  absl::Span<const EncoderOnGpus> encoders,
                                                  absl::Span<const Split> splits) {
  std::vector<step::StageMemory> result(llm_stages.begin(), llm_stages.end());
  for (std::size_t s = 0; s < result.size(); ++s) {
    for (std::int32_t rank = 0; rank < llm_tensor_parallel; ++rank) {
      step::StageMemory sum = llm_stages[s];
      for (std::size_t k = 0; k < encoders.size(); ++k) {
        const Place place =
            PlaceOn(encoders[k].plan, llm_tensor_parallel, static_cast<std::int32_t>(s), rank);
        const EncoderStageMemory& stage = encoders[k].stages[place.stage];
        sum = Sum(sum, stage.fixed);
        sum.activations += splits[k][place.pipeline] * stage.activations_per_micro_batch;
      }
      if (sum.total() > result[s].total()) result[s] = sum;
    }
  }
  return result;
}

const step::StageMemory& Fullest(absl::Span<const step::StageMemory> stages) {
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const step::StageMemory& a, const step::StageMemory& b) { return a.total() < b.total(); });
}

std::string WhyItDoesNotFit(absl::Span<const step::StageMemory> stages, Bytes capacity) {
  const step::StageMemory& need = Fullest(stages);
  if (need.total() <= capacity) return "";
  return absl::StrFormat(
      "GPU memory of stage %d: %.1f GiB needed (parameters %.1f, gradients %.1f, optimizer state "
      "%.1f, activations %.1f, workspace %.1f), %.1f GiB there",
      &need - stages.data(), ToGib(need.total()), ToGib(need.parameters), ToGib(need.gradients),
      ToGib(need.optimizer_state), ToGib(need.activations), ToGib(need.workspace), ToGib(capacity));
}

absl::StatusOr<std::vector<std::int32_t>> MostMicroBatches(
    absl::Span<const step::StageMemory> llm_stages, std::int32_t llm_tensor_parallel,
    absl::Span<const EncoderOnGpus> encoders, Bytes capacity) {
  std::vector<Split> held;  // the same on all pipelines of an encoder
  std::vector<std::int32_t> most;
  for (const EncoderOnGpus& encoder : encoders) {
    const std::int32_t pipelines = PipelinesOn(encoder, llm_stages.size(), llm_tensor_parallel);
    most.push_back((encoder.micro_batches + pipelines - 1) / pipelines);
    held.emplace_back(pipelines, most.back());
  }
  if (std::string reason = WhyItDoesNotFit(
          MemoryWithEncoders(llm_stages, llm_tensor_parallel, encoders, held), capacity);
      !reason.empty()) {
    return absl::ResourceExhaustedError(reason);
  }
  for (std::size_t k = 0; k < encoders.size(); ++k) {
    std::fill(held[k].begin(), held[k].end(), 0);
    most[k] = MostOf(encoders[k],
                     MemoryWithEncoders(llm_stages, llm_tensor_parallel, encoders, held), capacity);
    std::fill(held[k].begin(), held[k].end(), most[k]);
  }
  return most;
}

}  // namespace optimus::planner
