#include "schedule/step/memory.h"

#include <algorithm>

#include "models/accounting.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/parameters.h"
#include "schedule/step/precision.h"

namespace optimus::step {
namespace {

constexpr int kOptimizerStateBytes = 12;  // fp32 master copy, momentum, variance
constexpr int kActivationBytes = 2;       // bf16

Bytes ItemActivations(const Stack& stack, const Item& item) {
  const Module& module = stack.modules[item.module];
  switch (item.kind) {
    case ItemKind::kLayer:
      if (module.frozen) return Bytes(0);
      return module.slices * models::LayerActivationBytes(module.config, module.slice);
    case ItemKind::kProjector: {
      const int shards = module.whole.sequence_parallel ? module.whole.tensor_parallel : 1;
      return Bytes(module.whole.tokens() * module.config.hidden_size() * kActivationBytes / shards);
    }
    case ItemKind::kEmbedding:
      return models::EmbeddingActivationBytes(module.config, module.whole);
    case ItemKind::kHead:
      break;
  }
  return models::HeadActivationBytes(module.config, module.whole);
}

Bytes ItemWeightGradients(const Stack& stack, const Item& item) {
  const Module& module = stack.modules[item.module];
  switch (item.kind) {
    case ItemKind::kLayer:
      if (module.frozen) return Bytes(0);
      return module.slices * models::LayerWeightGradientBytes(module.config, module.slice);
    case ItemKind::kProjector:
      return models::ProjectorWeightGradientBytes(
          module.config, stack.modules[0].config.hidden_size(), module.whole);
    case ItemKind::kEmbedding:
      return Bytes(0);  // its gradient belongs to the data gradients
    case ItemKind::kHead:
      break;
  }
  return models::HeadWeightGradientBytes(module.config, module.whole);
}

Bytes LayerWorkspace(const Stack& stack, const Item& item) {
  const Module& module = stack.modules[item.module];
  if (item.kind != ItemKind::kLayer || module.frozen) return Bytes(0);
  return models::LayerRecomputeWorkspaceBytes(module.config, module.slice);
}

Bytes GatheredInput(const Stack& stack, const Item& item) {
  const Module& module = stack.modules[item.module];
  if (item.kind != ItemKind::kLayer || !module.slice.sequence_parallel ||
      module.slice.tensor_parallel == 1) {
    return Bytes(0);
  }
  return Bytes(module.slice.tokens() * module.config.hidden_size() * kActivationBytes);
}

Bytes GatheredInput(const Stack& stack, int begin, int end) {
  Bytes largest;
  for (int i = begin; i < end; ++i) {
    largest = std::max(largest, GatheredInput(stack, stack.items[i]));
  }
  return largest;
}

// Forward and backward buffers on either side of the stage's virtual stages.
Bytes MessageBuffers(const Stack& stack, const ItemRanges& ranges, const Placing& placing,
                     int stage) {
  Bytes in, out;
  const int last = static_cast<int>(ranges.size()) - 2;
  for (int chunk = 0; chunk < placing.chunks; ++chunk) {
    const int v = placing.VirtualStageOf({stage, chunk});
    if (v > 0 && !placing.StaysBehind(v - 1)) {
      in = std::max(in, BoundaryBytes(stack, stack.items[ranges[v] - 1]));
    }
    if (v < last && !placing.StaysBehind(v)) {
      out = std::max(out, BoundaryBytes(stack, stack.items[ranges[v + 1] - 1]));
    }
  }
  return 2 * (in + out);
}

Bytes Workspace(const Stack& stack, const ItemRanges& ranges, const Placing& placing, int stage) {
  Bytes recompute, gathered;
  for (int chunk = 0; chunk < placing.chunks; ++chunk) {
    const int v = placing.VirtualStageOf({stage, chunk});
    recompute = std::max(recompute, RecomputeWorkspace(stack, ranges[v], ranges[v + 1]));
    gathered = std::max(gathered, GatheredInput(stack, ranges[v], ranges[v + 1]));
  }
  return recompute + gathered + MessageBuffers(stack, ranges, placing, stage);
}

}  // namespace

StageMemory StateMemory(const Plan& plan, std::int64_t all, std::int64_t trained,
                        std::int64_t shards) {
  StageMemory memory;
  memory.parameters = Bytes(all * kParameterBytes);
  memory.gradients = Bytes(trained * GradientBytes(plan));
  memory.optimizer_state = Bytes((trained * kOptimizerStateBytes + shards - 1) / shards);
  return memory;
}

Bytes RecomputeWorkspace(const Stack& stack, int begin, int end) {
  Bytes largest;
  for (int i = begin; i < end; ++i) {
    largest = std::max(largest, LayerWorkspace(stack, stack.items[i]));
  }
  return largest;
}

Bytes ActivationBytes(const Stack& stack, int begin, int end) {
  Bytes sum;
  for (int i = begin; i < end; ++i) sum += ItemActivations(stack, stack.items[i]);
  return sum;
}

Bytes WeightGradientBytes(const Stack& stack, int begin, int end) {
  Bytes sum;
  for (int i = begin; i < end; ++i) sum += ItemWeightGradients(stack, stack.items[i]);
  return sum;
}

Bytes PeakActivations(const std::vector<pipeline::Slot>& slots,
                      const std::vector<KeptBytes>& by_chunk) {
  Bytes kept, peak;
  for (const pipeline::Slot& slot : slots) {
    const KeptBytes& bytes = by_chunk[slot.chunk];
    switch (slot.kind) {
      case pipeline::SlotKind::kForward:
        kept += bytes.activations;
        break;
      case pipeline::SlotKind::kBackward:
        kept -= bytes.activations;
        break;
      case pipeline::SlotKind::kBackwardData:
        kept += bytes.weight_gradients - bytes.activations;
        break;
      case pipeline::SlotKind::kBackwardWeight:
        kept -= bytes.weight_gradients;
        break;
    }
    peak = std::max(peak, kept);
  }
  return peak;
}

StageMemory OneFOneBStageMemory(const Plan& plan, const Stack& stack, int stage, int begin, int end,
                                std::int64_t micro_batches) {
  const int stages = plan.pipeline_parallel();
  const bool embedding_elsewhere =
      std::none_of(stack.items.begin() + begin, stack.items.begin() + end,
                   [](const Item& item) { return item.kind == ItemKind::kEmbedding; });
  const bool tied_copy = stack.modules[0].config.tied_embeddings() && embedding_elsewhere;
  const ChunkParameters parameters = CountRange(stack, begin, end, tied_copy);
  StageMemory memory = StateMemory(plan, parameters.all, parameters.trained, OptimizerShards(plan));
  const std::int64_t kept = std::min<std::int64_t>(stages - stage, micro_batches);
  memory.activations = kept * ActivationBytes(stack, begin, end);
  // The boundaries of the other stages do not matter: any will do.
  ItemRanges ranges(stages + 1, static_cast<int>(stack.items.size()));
  ranges[stage] = begin;
  ranges[stage + 1] = end;
  memory.workspace = Workspace(stack, ranges, {.stages = stages}, stage);
  return memory;
}

std::vector<StageMemory> MemoryByStage(const Plan& plan, const Stack& stack,
                                       const ItemRanges& ranges, const pipeline::Order& order) {
  const Placing placing = PlacingOf(order);
  const std::vector<ChunkParameters> parameters = CountChunkParameters(stack, ranges, placing);
  std::vector<StageMemory> result;
  for (int s = 0; s < order.stages; ++s) {
    std::int64_t all = 0;
    std::int64_t trained = 0;
    std::vector<KeptBytes> kept;
    for (int chunk = 0; chunk < order.chunks; ++chunk) {
      const int v = placing.VirtualStageOf({s, chunk});
      all += parameters[v].all;
      trained += parameters[v].trained;
      kept.push_back({ActivationBytes(stack, ranges[v], ranges[v + 1]),
                      WeightGradientBytes(stack, ranges[v], ranges[v + 1])});
    }
    StageMemory memory = StateMemory(plan, all, trained, OptimizerShards(plan));
    memory.activations = PeakActivations(order.slots[s], kept);
    memory.workspace = Workspace(stack, ranges, placing, s);
    result.push_back(memory);
  }
  return result;
}

}  // namespace optimus::step
