#pragma once
// Our own GPU kernels, as functions that launch them. Plain types: nvcc compiles the other side.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace optimus::executor::cuda {

// A stamp on the GPU (executor/cuda/stamp_words.h).
struct StampValue {
  std::uint32_t words[7];
};

// The first stamp that was wrong, in memory of the host that the GPU writes.
struct StampError {
  volatile std::uint32_t state;   // 0: none; 1: there
  volatile std::uint32_t check;   // number of the check that failed
  volatile std::uint32_t member;  // which of the stamps that it compared
  volatile std::uint32_t found[7];
};

// Reads bytes / 2 from `in` and writes bytes / 2 to `out`, rounded up to 16 bytes each; nothing but
// a launch where bytes are 0. `blocks`: as many as fill the GPU.
cudaError_t LaunchStreaming(const void* in, void* out, std::int64_t bytes, int blocks,
                            cudaStream_t stream);

// Keeps one thread busy for so long.
cudaError_t LaunchSpin(std::int64_t nanoseconds, cudaStream_t stream);

// Rows of bf16 scores, as SoftmaxStep (executor/cuda/attention_plan.h) has them.
struct SoftmaxShape {
  std::int64_t rows, rows_per_pair, keys, row_stride, first_position, group;
  bool causal;
  float scale;
};
// scores = softmax(scale * scores); masked and padding columns become 0.
cudaError_t LaunchSoftmax(void* scores, const SoftmaxShape& shape, cudaStream_t stream);
// gradients = scale * p * (gradients - sum(p * gradients)), p: what LaunchSoftmax left.
cudaError_t LaunchSoftmaxGradient(const void* probabilities, void* gradients,
                                  const SoftmaxShape& shape, cudaStream_t stream);

// bf16 numbers of mean 0 and variance 1.
cudaError_t LaunchRandom(void* values, std::int64_t elements, std::uint32_t seed, int blocks,
                         cudaStream_t stream);

cudaError_t LaunchWriteStamp(StampValue* slot, const StampValue& value, cudaStream_t stream);
// Compares each of `count` stamps with `expected`, those words whose bit is in `mask`. `claimed`,
// on the GPU, is 0 until a check has failed: only the first one writes `error`, on the host.
cudaError_t LaunchCheckStamps(const StampValue* stamps, int count, const StampValue& expected,
                              std::uint32_t mask, std::uint32_t check, std::uint32_t* claimed,
                              StampError* error, cudaStream_t stream);

// Whether this build has code for the current GPU.
cudaError_t LookForCode();

}  // namespace optimus::executor::cuda
