#include "executor/numerics/tensor_memory.h"

#include <algorithm>

namespace optimus::executor::numerics {

// Made again (selective recomputation): it takes the place of the one before.
void TensorMemory::Made(Slot& slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto bytes = static_cast<std::int64_t>(slot.data.size() * sizeof(float));
  now_ += bytes - slot.bytes;
  slot.bytes = bytes;
  peak_ = std::max(peak_, now_);
}

void TensorMemory::Dropped(Slot& slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  now_ -= slot.bytes;
  if (slot.kept) kept_now_ -= slot.bytes;
  slot.bytes = 0;
  slot.kept = false;
}

void TensorMemory::Kept(Slot& slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (slot.kept || slot.bytes == 0) return;
  slot.kept = true;
  kept_now_ += slot.bytes;
  peak_kept_ = std::max(peak_kept_, kept_now_);
}

std::int64_t TensorMemory::peak() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peak_;
}

std::int64_t TensorMemory::peak_kept() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peak_kept_;
}

}  // namespace optimus::executor::numerics
