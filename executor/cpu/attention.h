#pragma once
// The attention core of a transformer layer on the CPU, forward and backward, on the calling
// thread. Query rows are taken in blocks, so that the scores of a block stay in the cache; under a
// causal mask a block multiplies only the keys up to its last row, so that about half of the work
// is left out, as the FLOPs of a Schedule say. (In a long sequence the keys are rounded up, so that
// there are few shapes: making oneDNN's primitives for one takes milliseconds.)
//
// Tensors lie without gaps: Q, O and their gradients as [sequences, heads, tokens, head_dim], K, V
// and theirs as [sequences, kv_heads, tokens, head_dim]; kv head j belongs to the query heads from
// j heads / kv_heads on. Scores are scaled by 1 / sqrt(head_dim).

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/kernel.h"
#include "base/units.h"
#include "executor/cpu/primitives.h"

namespace optimus::executor {

struct AttentionForwardOperands {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* o = nullptr;
};
struct AttentionBackwardOperands {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *o_gradient = nullptr;
  void *q_gradient = nullptr, *k_gradient = nullptr, *v_gradient = nullptr;
};

// What a core takes of memory. At most kEndless each (executor/cpu/sizes.h).
struct AttentionMemory {
  Bytes queries;  // Q, O or the gradient of one
  Bytes keys;     // K, V or the gradient of one
  Bytes scratch;  // without what oneDNN's primitives want
};

class AttentionCore {
 public:
  // Before anything is made, which takes its time. INVALID_ARGUMENT as Create.
  static absl::StatusOr<AttentionMemory> MemoryOf(const AttentionShape& shape, Element element);
  // `element`: of all tensors; sums and scores are f32. `row_block` 0: chosen. INVALID_ARGUMENT
  // where a size is below 1 or kv_heads does not divide heads.
  static absl::StatusOr<AttentionCore> Create(const AttentionShape& shape, Element element,
                                              std::int64_t row_block = 0);
  AttentionCore(AttentionCore&&) noexcept;
  AttentionCore& operator=(AttentionCore&&) noexcept;
  ~AttentionCore();

  Bytes query_bytes() const;  // of Q, O or the gradient of one
  Bytes key_bytes() const;    // of K, V or the gradient of one
  Bytes scratch() const;      // aligned to 64
  // FLOPs of the products that are really done: above the Schedule's where blocks straddle the
  // causal diagonal.
  Flops done() const;
  int shapes() const;  // of blocks

  // The one that the shape asks for. Gradients are overwritten.
  absl::Status Forward(const AttentionForwardOperands& operands, std::byte* scratch) const;
  absl::Status Backward(const AttentionBackwardOperands& operands, std::byte* scratch) const;

 private:
  class Impl;
  explicit AttentionCore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace optimus::executor
