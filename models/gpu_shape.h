#pragma once
// The widths of one layer as one GPU of a tensor-parallel group sees them. Internal to models/.

#include <cstdint>

#include "base/units.h"
#include "models/layers.h"
#include "models/model.pb.h"

namespace optimus::models {

inline constexpr std::int64_t kBf16Bytes = 2;
inline constexpr std::int64_t kFp32Bytes = 4;

// Whole-model values with the proto's defaults filled in.
std::int64_t QueryGroups(const ModelConfig& model);  // key/value heads
std::int64_t HeadDim(const ModelConfig& model);
std::int64_t Fc1Width(const ModelConfig& model);  // outputs of fc1: twice the FFN width for SwiGLU
// Key/value heads on one GPU. Fewer heads than GPUs: every GPU holds a copy of one.
std::int64_t KvHeadsPerGpu(const ModelConfig& model, int tensor_parallel);

struct GpuShape {
  std::int64_t tokens = 0;        // of the micro-batch slice
  std::int64_t local_tokens = 0;  // tokens that norms and residuals see here: /tp under SP
  std::int64_t hidden = 0;        // whole
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;  // heads on this GPU
  std::int64_t attention_width = 0;                    // heads * head_dim, on this GPU
  std::int64_t qkv_width = 0;                          // outputs of qkv on this GPU
  std::int64_t fc1_width = 0, ffn_width = 0;           // outputs of fc1, inputs of fc2, on this GPU
  std::int64_t vocabulary = 0;                         // on this GPU
  std::int64_t score_elements = 0;  // b * heads * s^2: entries of the attention matrices
  bool causal = false;
  // One activation [tokens, hidden] in bf16: what a collective moves (S), and the part of it that
  // norms and residuals read or write on this GPU (u).
  Bytes gathered() const { return Bytes(tokens * hidden * kBf16Bytes); }
  Bytes local() const { return Bytes(local_tokens * hidden * kBf16Bytes); }
};

// `model` and `shape` must have passed ValidateShape.
GpuShape MakeGpuShape(const ModelConfig& model, const LayerShape& shape);

}  // namespace optimus::models
