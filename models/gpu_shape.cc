#include "models/gpu_shape.h"

#include <algorithm>

namespace optimus::models {

std::int64_t QueryGroups(const ModelConfig& model) {
  return model.num_query_groups() > 0 ? model.num_query_groups() : model.num_attention_heads();
}

std::int64_t HeadDim(const ModelConfig& model) {
  return model.head_dim() > 0 ? model.head_dim()
                              : model.hidden_size() / model.num_attention_heads();
}

std::int64_t Fc1Width(const ModelConfig& model) {
  return model.ffn_hidden_size() * (model.activation() == ModelConfig::SWIGLU ? 2 : 1);
}

std::int64_t KvHeadsPerGpu(const ModelConfig& model, int tensor_parallel) {
  return std::max<std::int64_t>(1, QueryGroups(model) / tensor_parallel);
}

GpuShape MakeGpuShape(const ModelConfig& model, const LayerShape& shape) {
  const std::int64_t tp = shape.tensor_parallel;
  GpuShape gpu;
  gpu.tokens = shape.tokens();
  gpu.local_tokens = shape.sequence_parallel ? gpu.tokens / tp : gpu.tokens;
  gpu.hidden = model.hidden_size();
  gpu.heads = model.num_attention_heads() / tp;
  gpu.kv_heads = KvHeadsPerGpu(model, shape.tensor_parallel);
  gpu.head_dim = HeadDim(model);
  gpu.attention_width = gpu.heads * gpu.head_dim;
  gpu.qkv_width = (gpu.heads + 2 * gpu.kv_heads) * gpu.head_dim;
  gpu.fc1_width = Fc1Width(model) / tp;
  gpu.ffn_width = model.ffn_hidden_size() / tp;
  gpu.vocabulary = model.vocabulary_size() / tp;
  gpu.score_elements = gpu.tokens * gpu.heads * shape.sequence_length;
  gpu.causal = model.attention() == ModelConfig::CAUSAL;
  return gpu;
}

}  // namespace optimus::models
