#pragma once
// Stamps on the GPU: a slot for every operation, written and checked by kernels of one warp. The
// first check that fails is kept in memory of the host, so that it is seen while the step still
// runs, or hangs.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "executor/cuda/kernels.h"
#include "executor/cuda/memory.h"
#include "executor/runtime/stamp.h"

namespace optimus::executor::cuda {

using StampText = std::function<std::string(const Stamp&)>;

class StampTable {
 public:
  // At least so many slots. Nothing may be running.
  absl::Status Reserve(std::uint32_t slots);
  StampValue* slot(std::uint32_t index) const { return slots_.get() + index; }
  std::uint32_t slots() const { return slot_count_; }

  // Of a step: no checks yet; `stream` empties all slots.
  void Begin() { checks_.clear(); }
  absl::Status Clear(cudaStream_t stream);

  // A check of `expected` against what is at `stamps` when its turn comes. Returns its number.
  std::uint32_t AddCheck(const Stamp& expected, const StampText* text);
  absl::Status LaunchCheck(std::uint32_t check, const StampValue* stamps, int count,
                           std::uint32_t mask, cudaStream_t stream) const;
  static absl::Status LaunchWrite(StampValue* slot, const Stamp& stamp, cudaStream_t stream);

  // DATA_LOSS, naming both operations, once a check has failed.
  absl::Status error() const;

 private:
  struct Check {
    Stamp expected;
    const StampText* text = nullptr;
  };
  DeviceMemory<StampValue> slots_;
  std::uint32_t slot_count_ = 0;
  DeviceMemory<std::uint32_t> claimed_;
  HostMemory<StampError> error_;
  std::vector<Check> checks_;
};

}  // namespace optimus::executor::cuda
