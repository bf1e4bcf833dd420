#pragma once
// Transformer layers under Megatron tensor + sequence parallelism, lowered to kernels and
// collectives.

#include <cstdint>

#include "models/block.h"
#include "models/model.pb.h"

namespace optimus::models {

enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  // attention core only (Korthikanti et al., section 5)
  kFull,       // the whole layer from its input
};

enum class AttentionImplementation : std::uint8_t {
  kFlash,    // one fused kernel, nothing of size s^2 is stored
  kUnfused,  // QK^T, scale-mask-softmax, dropout, AV as separate kernels (2022's Megatron-LM)
};

// What one layer invocation sees.
struct LayerShape {
  std::int64_t sequences = 0;        // sequences of this micro-batch (or of this slice of it)
  std::int64_t sequence_length = 0;  // tokens of one sequence
  int tensor_parallel = 1;
  bool sequence_parallel = true;  // false: all-reduces instead of all-gather + reduce-scatter
  Recompute recompute = Recompute::kNone;
  AttentionImplementation attention = AttentionImplementation::kFlash;
  // true: residual add fused with the next norm, activation in the GEMM epilogue (Transformer
  // Engine, cuBLASLt). false: bias-GELU, bias-dropout-add and norm as kernels of their own (2022's
  // Megatron-LM).
  bool fused_elementwise = true;
  // true: the tensor-parallel collectives behind input gradients run under weight gradients. false:
  // they wait for the weight gradient of their own linear layer (Megatron-LM until 2021).
  bool backward_overlap = true;
  std::int64_t tokens() const { return sequences * sequence_length; }
};

// Which gradients a backward block computes: both (1F1B and interleaved), or apart (zero-bubble B /
// W). Recomputation belongs to kData.
enum class Gradients : std::uint8_t { kBoth, kData, kWeights };

// Shapes must have passed ValidateShape (models/accounting.h). In a backward block kWeights has the
// weight-gradient GEMMs only, no collectives: gathering their sharded inputs again under sequence
// parallelism is ignored. The embedding's gradient belongs to kData.
Block LayerForward(const ModelConfig& model, const LayerShape& shape);
Block LayerBackward(const ModelConfig& model, const LayerShape& shape, Gradients gradients);

// Token embedding (LLM): look-up, vocabulary-parallel, then reduce-scatter (or all-reduce).
Block EmbeddingForward(const ModelConfig& model, const LayerShape& shape);
Block EmbeddingBackward(const ModelConfig& model, const LayerShape& shape, Gradients gradients);

// Embedding and head of a model without vocabulary (an encoder) are empty blocks.
// Final norm, LM head GEMM (vocabulary-parallel) and cross-entropy loss. The head is
// never recomputed; the loss's small all-reduces are ignored.
Block HeadForward(const ModelConfig& model, const LayerShape& shape);
Block HeadBackward(const ModelConfig& model, const LayerShape& shape, Gradients gradients);

// One linear layer from the encoder's width to `llm_hidden_size`, column-parallel: a GEMM without
// collectives. `llm_hidden_size` must be a multiple of the tensor parallelism.
Block ProjectorForward(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                       const LayerShape& shape);
Block ProjectorBackward(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                        const LayerShape& shape, Gradients gradients);

}  // namespace optimus::models
