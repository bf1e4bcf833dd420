#include "schedule/step/parameters.h"

#include <algorithm>

#include "models/accounting.h"

namespace optimus::step {
namespace {

// Pipeline stages that hold the only item of this kind.
std::vector<int> StagesOf(const Stack& stack, const ItemRanges& ranges, const Placing& placing,
                          ItemKind kind) {
  std::vector<int> stages;
  for (int v = 0; v + 1 < static_cast<int>(ranges.size()); ++v) {
    for (int i = ranges[v]; i < ranges[v + 1]; ++i) {
      if (stack.items[i].kind != kind) continue;
      for (const pipeline::Place place : placing.PlacesOf(v)) stages.push_back(place.stage);
    }
  }
  std::sort(stages.begin(), stages.end());
  return stages;
}

}  // namespace

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

bool HasTiedCopy(const Stack& stack, const ItemRanges& ranges, const Placing& placing) {
  return stack.modules[0].config.tied_embeddings() &&
         StagesOf(stack, ranges, placing, ItemKind::kEmbedding) !=
             StagesOf(stack, ranges, placing, ItemKind::kHead);
}

std::int64_t TiedParameters(const Stack& stack, const Item& item) {
  const bool holds_table = item.kind == ItemKind::kEmbedding || item.kind == ItemKind::kHead;
  if (!holds_table || !IsTrained(stack, item)) return 0;
  const Module& llm = stack.modules[0];
  return models::TokenEmbeddingParametersPerGpu(llm.config, llm.whole.tensor_parallel);
}

ChunkParameters CountRange(const Stack& stack, int begin, int end, bool tied_copy) {
  const Module& llm = stack.modules[0];
  ChunkParameters result;
  for (int i = begin; i < end; ++i) {
    const Item& item = stack.items[i];
    std::int64_t count = ItemParameters(stack, item);
    if (tied_copy && item.kind == ItemKind::kHead) {
      count += models::TokenEmbeddingParametersPerGpu(llm.config, llm.whole.tensor_parallel);
    }
    result.all += count;
    if (IsTrained(stack, item)) result.trained += count;
  }
  return result;
}

std::vector<ChunkParameters> CountChunkParameters(const Stack& stack, const ItemRanges& ranges,
                                                  const Placing& placing) {
  const bool tied_copy = HasTiedCopy(stack, ranges, placing);
  std::vector<ChunkParameters> result;
  for (std::size_t v = 0; v + 1 < ranges.size(); ++v) {
    result.push_back(CountRange(stack, ranges[v], ranges[v + 1], tied_copy));
  }
  return result;
}

}  // namespace optimus::step
