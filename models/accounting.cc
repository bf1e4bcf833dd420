#include "models/accounting.h"

#include "models/gpu_shape.h"

namespace optimus::models {
namespace {

std::int64_t NormParameters(const ModelConfig& model) {
  return model.hidden_size() * (model.norm() == ModelConfig::RMS_NORM ? 1 : 2);
}

// qkv and fc1 are column-parallel, with their biases; proj and fc2 are row-parallel, with whole
// biases on every GPU.
LayerParameters LayerParametersOf(const ModelConfig& model, int tensor_parallel) {
  const std::int64_t hidden = model.hidden_size();
  const std::int64_t bias = model.linear_bias() ? 1 : 0;
  const std::int64_t heads = model.num_attention_heads() / tensor_parallel;
  const std::int64_t attention = heads * HeadDim(model);
  const std::int64_t qkv = (heads + 2 * KvHeadsPerGpu(model, tensor_parallel)) * HeadDim(model);
  const std::int64_t fc1 = Fc1Width(model) / tensor_parallel;
  const std::int64_t ffn = model.ffn_hidden_size() / tensor_parallel;
  LayerParameters parameters;
  parameters.attention = (hidden + bias) * qkv + (attention + bias) * hidden;
  parameters.mlp = (hidden + bias) * fc1 + (ffn + bias) * hidden;
  parameters.norms = 2 * NormParameters(model);
  return parameters;
}

// Sizes of what a layer keeps, in bytes on one GPU.
struct Tensors {
  std::int64_t residual = 0;   // [tokens, h] bf16, where norms and residuals live (/tp under SP)
  std::int64_t mask = 0;       // a dropout mask of that shape, one byte an element
  std::int64_t attention = 0;  // [tokens, heads d] bf16: Q, or the core's output
  std::int64_t kv = 0;         // K and V together
  std::int64_t fc1 = 0;        // output of fc1
  std::int64_t ffn = 0;        // input of fc2
  std::int64_t core = 0;       // inside the attention core
};

// Inside the core. Unfused (Korthikanti et al.): softmax output and dropout output in bf16 and the
// dropout mask, 5 bytes an element of the s x s matrices. Flash: the fp32 log-sum-exp of every row.
std::int64_t CoreBytes(const GpuShape& gpu, const LayerShape& shape) {
  if (shape.attention == AttentionImplementation::kUnfused) {
    return gpu.score_elements * (2 * kBf16Bytes + 1);
  }
  return gpu.tokens * gpu.heads * kFp32Bytes;
}

Tensors TensorsOf(const ModelConfig& model, const LayerShape& shape) {
  const GpuShape gpu = MakeGpuShape(model, shape);
  Tensors t;
  t.residual = gpu.local().value();
  t.mask = gpu.local_tokens * gpu.hidden;
  t.attention = gpu.tokens * gpu.attention_width * kBf16Bytes;
  t.kv = gpu.tokens * 2 * gpu.kv_heads * gpu.head_dim * kBf16Bytes;
  t.fc1 = gpu.tokens * gpu.fc1_width * kBf16Bytes;
  t.ffn = gpu.tokens * gpu.ffn_width * kBf16Bytes;
  t.core = CoreBytes(gpu, shape);
  return t;
}

// Everything kept without recomputation, less the attention core's inside:
//   norm1: its input                        residual
//   qkv: its input (norm1's output)         residual
//   attention core: Q; K, V                 attention; kv
//   proj: its input (the core's output)     attention
//   dropout after proj: its mask            mask (unfused elementwise only: the fused kernels of
//                                           current recipes train without dropout)
//   norm2: its input                        residual
//   fc1: its input (norm2's output)         residual
//   activation: its input (fc1's output)    fc1
//   fc2: its input                          ffn
//   dropout after fc2: its mask             mask (as above)
// For a GELU layer with d a = h, ffn = 4 h and unfused elementwise kernels this is Korthikanti's
// s b h (10 + 24 / t), and 34 s b h / t under sequence parallelism (which keeps only the GPU's own
// tokens of the inputs of qkv and fc1; the traffic of gathering them again is ignored).
std::int64_t OutsideCoreBytes(const Tensors& t, const LayerShape& shape) {
  const std::int64_t masks = shape.fused_elementwise ? 0 : 2 * t.mask;
  return 4 * t.residual + 2 * t.attention + t.kv + t.fc1 + t.ffn + masks;
}

}  // namespace

LayerParameters CountLayerParameters(const ModelConfig& model) {
  return LayerParametersOf(model, /*tensor_parallel=*/1);
}

std::int64_t CountEmbeddingParameters(const ModelConfig& model) {
  return EmbeddingParametersPerGpu(model, /*tensor_parallel=*/1);
}

std::int64_t CountHeadParameters(const ModelConfig& model) {
  return HeadParametersPerGpu(model, /*tensor_parallel=*/1);
}

std::int64_t CountParameters(const ModelConfig& model) {
  return model.num_layers() * CountLayerParameters(model).total() +
         CountEmbeddingParameters(model) + CountHeadParameters(model);
}

std::int64_t CountProjectorParameters(const ModelConfig& encoder, std::int64_t llm_hidden_size) {
  return ProjectorParametersPerGpu(encoder, llm_hidden_size, /*tensor_parallel=*/1);
}

std::int64_t LayerParametersPerGpu(const ModelConfig& model, int tensor_parallel) {
  return LayerParametersOf(model, tensor_parallel).total();
}

std::int64_t TokenEmbeddingParametersPerGpu(const ModelConfig& model, int tensor_parallel) {
  return model.vocabulary_size() / tensor_parallel * model.hidden_size();
}

std::int64_t EmbeddingParametersPerGpu(const ModelConfig& model, int tensor_parallel) {
  return TokenEmbeddingParametersPerGpu(model, tensor_parallel) +
         model.max_position_embeddings() * model.hidden_size();
}

std::int64_t HeadParametersPerGpu(const ModelConfig& model, int tensor_parallel) {
  const std::int64_t head =
      model.tied_embeddings() ? 0 : TokenEmbeddingParametersPerGpu(model, tensor_parallel);
  return NormParameters(model) + head;
}

std::int64_t ProjectorParametersPerGpu(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                                       int tensor_parallel) {
  const std::int64_t bias = encoder.linear_bias() ? 1 : 0;
  return (encoder.hidden_size() + bias) * (llm_hidden_size / tensor_parallel);
}

Flops ModelFlops(const ModelConfig& model, std::int64_t tokens, std::int64_t sequence_length) {
  const double layers = model.num_layers();
  const double parameters =
      layers * static_cast<double>(CountLayerParameters(model).total()) +
      static_cast<double>(model.vocabulary_size()) * static_cast<double>(model.hidden_size());
  const auto attention_width = static_cast<double>(model.num_attention_heads() * HeadDim(model));
  const double per_token =
      6 * parameters + 12 * layers * attention_width * static_cast<double>(sequence_length);
  return Flops(static_cast<double>(tokens) * per_token);
}

Bytes LayerActivationBytes(const ModelConfig& model, const LayerShape& shape) {
  const Tensors t = TensorsOf(model, shape);
  switch (shape.recompute) {
    case Recompute::kFull:
      return Bytes(t.residual);
    case Recompute::kSelective:
      return Bytes(OutsideCoreBytes(t, shape));
    case Recompute::kNone:
      break;
  }
  return Bytes(OutsideCoreBytes(t, shape) + t.core);
}

Bytes LayerRecomputeWorkspaceBytes(const ModelConfig& model, const LayerShape& shape) {
  LayerShape kept_whole = shape;
  kept_whole.recompute = Recompute::kNone;
  return LayerActivationBytes(model, kept_whole) - LayerActivationBytes(model, shape);
}

Bytes EmbeddingActivationBytes(const ModelConfig& model, const LayerShape& shape) {
  if (model.vocabulary_size() == 0 || shape.fused_elementwise) return Bytes(0);
  return Bytes(TensorsOf(model, shape).mask);
}

Bytes HeadActivationBytes(const ModelConfig& model, const LayerShape& shape) {
  if (model.vocabulary_size() == 0) return Bytes(0);
  const GpuShape gpu = MakeGpuShape(model, shape);
  return gpu.local() * 2 + Bytes(gpu.tokens * gpu.vocabulary * kFp32Bytes);
}

Bytes LayerWeightGradientBytes(const ModelConfig& model, const LayerShape& shape) {
  const GpuShape gpu = MakeGpuShape(model, shape);
  const Bytes inputs =
      gpu.local() * 2 + Bytes(gpu.tokens * (gpu.attention_width + gpu.ffn_width) * kBf16Bytes);
  const Bytes gradients =
      gpu.gathered() * 2 + Bytes(gpu.tokens * (gpu.qkv_width + gpu.fc1_width) * kBf16Bytes);
  return inputs + gradients;
}

Bytes HeadWeightGradientBytes(const ModelConfig& model, const LayerShape& shape) {
  if (model.vocabulary_size() == 0) return Bytes(0);
  const GpuShape gpu = MakeGpuShape(model, shape);
  return gpu.local() + Bytes(gpu.tokens * gpu.vocabulary * kBf16Bytes);
}

Bytes ProjectorWeightGradientBytes(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                                   const LayerShape& shape) {
  const GpuShape gpu = MakeGpuShape(encoder, shape);
  return gpu.local() + Bytes(gpu.tokens * (llm_hidden_size / shape.tensor_parallel) * kBf16Bytes);
}

}  // namespace optimus::models
