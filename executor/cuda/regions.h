#pragma once
// Which part of a buffer the next kernel uses: one after the other, so that what it reads has left
// the GPU's L2 cache since it was last touched, as in training, where a layer's data does not come
// again for a long time.

#include <cstdint>

namespace optimus::executor::cuda {

class Regions {
 public:
  static constexpr std::int64_t kAlignment = 256;  // cuBLAS's fastest kernels want it
  static std::int64_t Align(std::int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  Regions() = default;
  explicit Regions(std::int64_t capacity) : capacity_(capacity) {}
  std::int64_t capacity() const { return capacity_; }

  // Offset of a region of `bytes`, at most the capacity.
  std::int64_t Take(std::int64_t bytes) {
    if (next_ + bytes > capacity_) next_ = 0;
    const std::int64_t offset = next_;
    next_ = Align(next_ + bytes);
    return offset;
  }
  // From the start again: every step uses the same addresses, so a captured graph fits them.
  void Restart() { next_ = 0; }

 private:
  std::int64_t capacity_ = 0;
  std::int64_t next_ = 0;
};

}  // namespace optimus::executor::cuda
