#include "models/kernels.h"

#include <utility>

namespace optimus::models {
namespace {

constexpr std::int64_t kMaskBytes = 1;

Kernel Gemm(std::string name, GemmShape shape, Bytes bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = std::move(name);
  kernel.gemm = shape;
  kernel.flops = Flops(2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k));
  kernel.bytes = bytes;
  return kernel;
}

Bytes GemmBytes(const GemmShape& g, std::int64_t output_element_bytes) {
  return Bytes((g.m * g.k + g.k * g.n) * kBf16Bytes + g.m * g.n * output_element_bytes);
}

Kernel FlashAttention(const GpuShape& gpu, const LayerShape& shape, bool backward) {
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.name = backward ? "attention_dgrad" : "attention";
  kernel.attention = {shape.sequences, gpu.heads,  gpu.kv_heads, shape.sequence_length,
                      gpu.head_dim,    gpu.causal, backward};
  // QK^T and PV: 2 GEMMs of 2 s^2 d FLOPs a head and sequence.
  const double full =
      4.0 * static_cast<double>(gpu.score_elements) * static_cast<double>(gpu.head_dim);
  const double forward = gpu.causal ? full / 2 : full;
  kernel.flops = Flops(backward ? 2.5 * forward : forward);
  // Forward: Q, K, V in, O and the fp32 log-sum-exp out. Backward: Q, K, V, O, dO and the
  // log-sum-exp in, dQ, dK, dV out.
  const std::int64_t q_or_o = gpu.tokens * gpu.attention_width * kBf16Bytes;
  const std::int64_t k_or_v = gpu.tokens * gpu.kv_heads * gpu.head_dim * kBf16Bytes;
  const std::int64_t log_sum_exp = gpu.tokens * gpu.heads * kFp32Bytes;
  kernel.bytes = Bytes((backward ? 4 : 2) * (q_or_o + k_or_v) + log_sum_exp);
  return kernel;
}

// A batched GEMM of the unfused attention. Batch and heads are folded into m, so that `flops` is
// 2 m n k; traffic counts each operand once: one score matrix and two [tokens, heads, d] tensors,
// of which K, V and their gradients have only kv_heads.
enum class Output : std::uint8_t { kScores, kHeads };
Kernel ScoreGemm(std::string name, const GpuShape& gpu, const LayerShape& shape, Output output) {
  const std::int64_t rows = gpu.tokens * gpu.heads;
  const bool scores = output == Output::kScores;
  const GemmShape gemm = {rows, scores ? shape.sequence_length : gpu.head_dim,
                          scores ? gpu.head_dim : shape.sequence_length};
  const std::int64_t elements =
      gpu.score_elements + gpu.tokens * (gpu.heads + gpu.kv_heads) * gpu.head_dim;
  return Gemm(std::move(name), gemm, Bytes(elements * kBf16Bytes));
}

}  // namespace

Kernel Forward(const Linear& linear) {
  const GemmShape gemm = {linear.tokens, linear.out, linear.in};
  return Gemm(linear.name, gemm, GemmBytes(gemm, kBf16Bytes));
}

Kernel DataGradient(const Linear& linear) {
  const GemmShape gemm = {linear.tokens, linear.in, linear.out};
  return Gemm(linear.name + "_dgrad", gemm, GemmBytes(gemm, kBf16Bytes));
}

Kernel WeightGradient(const Linear& linear) {
  const GemmShape gemm = {linear.out, linear.in, linear.tokens};
  return Gemm(linear.name + "_wgrad", gemm, GemmBytes(gemm, 2 * kFp32Bytes));
}

Kernel MemoryBound(std::string name, Bytes bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.name = std::move(name);
  kernel.bytes = bytes;
  return kernel;
}

std::vector<Kernel> AttentionForward(const GpuShape& gpu, const LayerShape& shape) {
  if (shape.attention == AttentionImplementation::kFlash) {
    return {FlashAttention(gpu, shape, /*backward=*/false)};
  }
  const std::int64_t e = gpu.score_elements;
  return {
      ScoreGemm("qk", gpu, shape, Output::kScores),
      MemoryBound("softmax", Bytes(e * 2 * kBf16Bytes)),  // scale, mask, softmax: read, write
      MemoryBound("attention_dropout", Bytes(e * (2 * kBf16Bytes + kMaskBytes))),
      ScoreGemm("av", gpu, shape, Output::kHeads),
  };
}

std::vector<Kernel> AttentionBackward(const GpuShape& gpu, const LayerShape& shape) {
  if (shape.attention == AttentionImplementation::kFlash) {
    return {FlashAttention(gpu, shape, /*backward=*/true)};
  }
  const std::int64_t e = gpu.score_elements;
  return {
      ScoreGemm("av_dgrad_scores", gpu, shape, Output::kScores),  // dP = dO V^T
      ScoreGemm("av_dgrad_v", gpu, shape, Output::kHeads),        // dV = P^T dO
      MemoryBound("attention_dropout_dgrad", Bytes(e * (2 * kBf16Bytes + kMaskBytes))),
      MemoryBound("softmax_dgrad", Bytes(e * 3 * kBf16Bytes)),  // dP and P in, dS out
      ScoreGemm("qk_dgrad_q", gpu, shape, Output::kHeads),      // dQ = dS K
      ScoreGemm("qk_dgrad_k", gpu, shape, Output::kHeads),      // dK = dS^T Q
  };
}

}  // namespace optimus::models
