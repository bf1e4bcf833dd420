#pragma once
// The memory that kernels and transfers read and write: two buffers, one that is only read (random
// bf16 numbers, because zeros would draw less power than a model's data and so run at a higher
// clock) and one that is only written. Offsets stay good when a buffer grows; addresses do not.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/memory.h"
#include "executor/cuda/regions.h"

namespace optimus::executor::cuda {

class Arena {
 public:
  // `blocks`: as many as fill the GPU.
  Arena(int blocks, cudaStream_t stream) : blocks_(blocks), stream_(stream) {}

  // At least so large each, and large beside the L2 cache. Nothing may be running on the GPU.
  // RESOURCE_EXHAUSTED says how much was wanted.
  absl::Status Reserve(std::int64_t inputs, std::int64_t outputs);

  // Offsets of the next regions. Grows a buffer that is too small, so nothing may be running.
  absl::StatusOr<std::int64_t> TakeInput(std::int64_t bytes);
  absl::StatusOr<std::int64_t> TakeOutput(std::int64_t bytes);
  void Restart();

  char* input(std::int64_t offset) const { return inputs_.get() + offset; }
  char* output(std::int64_t offset) const { return outputs_.get() + offset; }
  // Changes when addresses do.
  int generation() const { return generation_; }

 private:
  absl::Status Grow(DeviceMemory<char>& memory, Regions& regions, std::int64_t bytes);

  int blocks_;
  cudaStream_t stream_;
  DeviceMemory<char> inputs_, outputs_;
  Regions input_regions_, output_regions_;
  int generation_ = 0;
};

}  // namespace optimus::executor::cuda
