#pragma once
// The memory that kernels work on where their data means nothing. Operands are taken at offsets
// that move on with every kernel, round and round, so that a kernel finds weights and activations
// where a training step would have left them, in memory and not in the cache: profiling and running
// see the same, and the order of kernels alone decides where their operands lie. What is read and
// what is written are two regions, so that no value grows from kernel to kernel; sums (weight
// gradients) grow by a bounded amount each.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "executor/cpu/primitives.h"

namespace optimus::executor {

class Arena {
 public:
  // Sizes are rounded up to whole pages. Every page is touched here, so that none faults in a step:
  // inputs hold values of `element` between -0.5 and 0.5, outputs zeros. RESOURCE_EXHAUSTED where
  // the system does not give it.
  static absl::StatusOr<Arena> Create(Bytes inputs, Bytes outputs, Element element);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  Bytes inputs() const { return inputs_.size; }
  Bytes outputs() const { return outputs_.size; }
  // The next place of `bytes` without a gap, at most the region's size, aligned to 64.
  const std::byte* NextInput(Bytes bytes) { return inputs_.Next(bytes); }
  std::byte* NextOutput(Bytes bytes) { return outputs_.Next(bytes); }

  // Whether all that has been written is finite, taken as f32.
  bool OutputsAreFinite() const;

 private:
  struct Region {
    std::byte* data = nullptr;
    Bytes size;
    std::int64_t next = 0;
    std::byte* Next(Bytes bytes);
  };
  Arena() = default;
  void Release();
  Region inputs_, outputs_;
};

// RESOURCE_EXHAUSTED where the system does not give so much just now; nothing is kept.
absl::Status CheckAvailable(Bytes bytes);

// How large each region is where no kernel needs more: together eight times the last-level cache
// (256 MiB to 2 GiB), but no more than a quarter of what this rank may fill.
Bytes UsualRegion(Bytes last_level_cache, Bytes memory_share);

}  // namespace optimus::executor
