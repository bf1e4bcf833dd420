#include "schedule/step/parameters.h"

#include "models/accounting.h"

namespace optimus::step {
namespace {

std::int64_t ItemParameters(const Stack& stack, const Item& item) {
  const Module& module = stack.modules[item.module];
  const int tp = module.whole.tensor_parallel;
  switch (item.kind) {
    case ItemKind::kLayer:
      return models::LayerParametersPerGpu(module.config, tp);
    case ItemKind::kProjector:
      return models::ProjectorParametersPerGpu(module.config, stack.modules[0].config.hidden_size(),
                                               tp);
    case ItemKind::kEmbedding:
      return models::EmbeddingParametersPerGpu(module.config, tp);
    case ItemKind::kHead:
      break;
  }
  return models::HeadParametersPerGpu(module.config, tp);
}

// Pipeline stage of the only item of this kind.
int StageOf(const Stack& stack, const ItemRanges& ranges, int stages, ItemKind kind) {
  for (int v = 0; v + 1 < static_cast<int>(ranges.size()); ++v) {
    for (int i = ranges[v]; i < ranges[v + 1]; ++i) {
      if (stack.items[i].kind == kind) return v % stages;
    }
  }
  return -1;
}

}  // namespace

bool HasTiedCopy(const Stack& stack, const ItemRanges& ranges, int stages) {
  return stack.modules[0].config.tied_embeddings() &&
         StageOf(stack, ranges, stages, ItemKind::kEmbedding) !=
             StageOf(stack, ranges, stages, ItemKind::kHead);
}

std::vector<ChunkParameters> CountChunkParameters(const Stack& stack, const ItemRanges& ranges,
                                                  int stages) {
  const Module& llm = stack.modules[0];
  const std::int64_t copy =
      HasTiedCopy(stack, ranges, stages)
          ? models::TokenEmbeddingParametersPerGpu(llm.config, llm.whole.tensor_parallel)
          : 0;
  std::vector<ChunkParameters> result(ranges.size() - 1);
  for (std::size_t v = 0; v < result.size(); ++v) {
    for (int i = ranges[v]; i < ranges[v + 1]; ++i) {
      const Item& item = stack.items[i];
      const std::int64_t count =
          ItemParameters(stack, item) + (item.kind == ItemKind::kHead ? copy : 0);
      result[v].all += count;
      if (IsTrained(stack, item)) result[v].trained += count;
    }
  }
  return result;
}

}  // namespace optimus::step
