#pragma once
// FLOPs, parameters and activation memory of a model, by category.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/units.h"
#include "models/layers.h"
#include "models/model.pb.h"

namespace optimus::models {

// Parameters of one transformer layer, whole model (not divided by tensor parallelism).
struct LayerParameters {
  std::int64_t attention = 0;
  std::int64_t mlp = 0;
  std::int64_t norms = 0;
  std::int64_t total() const { return attention + mlp + norms; }
};
LayerParameters CountLayerParameters(const ModelConfig& model);
std::int64_t CountEmbeddingParameters(const ModelConfig& model);  // tokens + learned positions
std::int64_t CountHeadParameters(const ModelConfig& model);  // final norm (+ LM head if untied)
std::int64_t CountParameters(const ModelConfig& model);      // everything
std::int64_t CountProjectorParameters(const ModelConfig& encoder, std::int64_t llm_hidden_size);

// The same, on one GPU of a tensor-parallel group (norms are replicated).
std::int64_t LayerParametersPerGpu(const ModelConfig& model, int tensor_parallel);
// The token table alone: what a last pipeline stage holds a second copy of where the embeddings are
// tied and the first stage is another GPU's.
std::int64_t TokenEmbeddingParametersPerGpu(const ModelConfig& model, int tensor_parallel);
std::int64_t EmbeddingParametersPerGpu(const ModelConfig& model, int tensor_parallel);
std::int64_t HeadParametersPerGpu(const ModelConfig& model, int tensor_parallel);
std::int64_t ProjectorParametersPerGpu(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                                       int tensor_parallel);

// Model FLOPs of one step, calibration.md: 6 N tokens + 12 L h s per token; no recomputation;
// attention counted in full (not halved for a causal mask). N = layer parameters with biases +
// vocabulary * h.
Flops ModelFlops(const ModelConfig& model, std::int64_t tokens, std::int64_t sequence_length);

// Bytes of activations one layer keeps on one GPU from a forward to its backward, for `shape`
// (Korthikanti et al., equations 1-6, and the flash-attention equivalent).
Bytes LayerActivationBytes(const ModelConfig& model, const LayerShape& shape);
// What one layer needs on top of that while its backward runs with full or selective recomputation.
Bytes LayerRecomputeWorkspaceBytes(const ModelConfig& model, const LayerShape& shape);
// Embedding output dropout mask / LM head input, logits in fp32.
Bytes EmbeddingActivationBytes(const ModelConfig& model, const LayerShape& shape);
Bytes HeadActivationBytes(const ModelConfig& model, const LayerShape& shape);

// Bytes kept on one GPU from a data gradient to the weight gradient of the same layer, head or
// projector where the two run apart: the inputs and the output gradients of the linear layers (Qi
// et al., arXiv 2401.10241, Table 1: 32 s b h for a GELU layer on one GPU). Under sequence
// parallelism the inputs of qkv, fc1 and head are the GPU's own tokens; the output gradients of
// proj and fc2 stay as they were gathered. The same under any recomputation: what was recomputed
// for the data gradient is kept for the weight gradient.
Bytes LayerWeightGradientBytes(const ModelConfig& model, const LayerShape& shape);
Bytes HeadWeightGradientBytes(const ModelConfig& model, const LayerShape& shape);
Bytes ProjectorWeightGradientBytes(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                                   const LayerShape& shape);

// Divisibility and positivity; INVALID_ARGUMENT names the field.
absl::Status ValidateModel(const ModelConfig& model, int tensor_parallel);
// ValidateModel, and that the micro-batch is positive, splits under sequence parallelism and does
// not overflow. Every function that takes a LayerShape relies on it.
absl::Status ValidateShape(const ModelConfig& model, const LayerShape& shape);

}  // namespace optimus::models
