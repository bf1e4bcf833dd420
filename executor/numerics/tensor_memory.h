#pragma once
// How much a rank's tensors of activations and gradients take, and how much of that is there for
// weight gradients alone.

#include <cstdint>
#include <mutex>

#include "executor/numerics/slots.h"

namespace optimus::executor::numerics {

// In bytes of f32. Streams may come at the same time.
class TensorMemory {
 public:
  void Made(Slot& slot);
  void Dropped(Slot& slot);
  // From here to Dropped it waits for weight gradients only. A tensor that is not there counts
  // nothing.
  void Kept(Slot& slot);

  // The most at one time, between operations.
  std::int64_t peak() const;
  std::int64_t peak_kept() const;

 private:
  mutable std::mutex mutex_;
  std::int64_t now_ = 0, peak_ = 0, kept_now_ = 0, peak_kept_ = 0;
};

}  // namespace optimus::executor::numerics
