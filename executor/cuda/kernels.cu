#include <cuda_bf16.h>

#include "executor/cuda/kernels.h"

namespace optimus::executor::cuda {
namespace {

constexpr int kThreads = 256;

// ---- streaming

constexpr int kUnroll = 4;  // loads in flight a thread: hides HBM's latency

__global__ void __launch_bounds__(kThreads)
    StreamingKernel(const uint4* __restrict__ in, uint4* __restrict__ out, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < count; i += kUnroll * stride) {
    uint4 value[kUnroll];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) value[j] = in[i + j * stride];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) out[i + j * stride] = value[j];
  }
  for (; i < count; i += stride) out[i] = in[i];
}

__global__ void SpinKernel(std::int64_t nanoseconds) {
  unsigned long long start;
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    __nanosleep(100);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (static_cast<std::int64_t>(now - start) < nanoseconds);
}

// ---- softmax

constexpr int kWide = 8;  // bf16 numbers of one 16-byte load

struct Numbers {
  float value[kWide];
};

__device__ Numbers Load(const __nv_bfloat16* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(&raw);
  Numbers numbers;
#pragma unroll
  for (int i = 0; i < kWide / 2; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    numbers.value[2 * i] = pair.x;
    numbers.value[2 * i + 1] = pair.y;
  }
  return numbers;
}

__device__ void Store(__nv_bfloat16* to, const Numbers& numbers) {
  uint4 raw;
  auto* pairs = reinterpret_cast<__nv_bfloat162*>(&raw);
#pragma unroll
  for (int i = 0; i < kWide / 2; ++i) {
    pairs[i] = __floats2bfloat162_rn(numbers.value[2 * i], numbers.value[2 * i + 1]);
  }
  *reinterpret_cast<uint4*>(to) = raw;
}

struct Sum {
  __device__ static float Of(float a, float b) { return a + b; }
};
struct Largest {
  __device__ static float Of(float a, float b) { return fmaxf(a, b); }
};

// Over the kWidth threads of a row; every one gets the result. A block of 256 threads holds 256 /
// kWidth rows: a warp each (32), or all of it one row (256).
template <int kWidth, class Operation>
__device__ float OverRow(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Operation::Of(value, __shfl_xor_sync(0xffffffffU, value, distance));
  }
  if (kWidth == 32) return value;
  __shared__ float of_warp[kThreads / 32];
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
#pragma unroll
  for (int warp = 1; warp < kThreads / 32; ++warp) value = Operation::Of(value, of_warp[warp]);
  __syncthreads();  // of_warp is used again
  return value;
}

// The row of this thread, and how many of its columns its query sees. The threads of a row all have
// the same one, so those beyond the last row can leave.
struct Row {
  std::int64_t index, offset, seen;
  int lane;
};

template <int kWidth>
__device__ Row RowOf(const SoftmaxShape& shape) {
  Row row;
  row.index = static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWidth) + threadIdx.x / kWidth;
  row.lane = static_cast<int>(threadIdx.x) % kWidth;
  row.offset = row.index * shape.row_stride;
  const std::int64_t position =
      shape.first_position + row.index % shape.rows_per_pair / shape.group;
  row.seen = shape.causal && position + 1 < shape.keys ? position + 1 : shape.keys;
  return row;
}

// Two looks at the row: the largest score and the sum of exponentials in one, rescaled as larger
// scores come; then the result.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    SoftmaxKernel(__nv_bfloat16* __restrict__ scores, SoftmaxShape shape) {
  const Row row = RowOf<kWidth>(shape);
  if (row.index >= shape.rows) return;
  __nv_bfloat16* const mine = scores + row.offset;
  const float scale = shape.scale * 1.44269504F;  // exp2 instead of exp
  float largest = -INFINITY;
  float sum = 0;
  for (std::int64_t at = row.lane * kWide; at < row.seen; at += kWidth * kWide) {
    const Numbers x = Load(mine + at);
    float most = largest;
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      if (at + i < row.seen) most = fmaxf(most, x.value[i]);
    }
    sum *= exp2f((largest - most) * scale);
    largest = most;
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      if (at + i < row.seen) sum += exp2f((x.value[i] - largest) * scale);
    }
  }
  const float most = OverRow<kWidth, Largest>(largest);
  // A thread without columns has sum 0 and largest -infinity: exp2 makes that 0 * 0.
  sum = OverRow<kWidth, Sum>(sum * exp2f((largest - most) * scale));
  const float inverse = 1.0F / sum;
  for (std::int64_t at = row.lane * kWide; at < shape.row_stride; at += kWidth * kWide) {
    Numbers x = Load(mine + at);
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      x.value[i] = at + i < row.seen ? exp2f((x.value[i] - most) * scale) * inverse : 0.0F;
    }
    Store(mine + at, x);
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    SoftmaxGradientKernel(const __nv_bfloat16* __restrict__ probabilities,
                          __nv_bfloat16* __restrict__ gradients, SoftmaxShape shape) {
  const Row row = RowOf<kWidth>(shape);
  if (row.index >= shape.rows) return;
  const __nv_bfloat16* const p = probabilities + row.offset;
  __nv_bfloat16* const g = gradients + row.offset;
  float sum = 0;
  for (std::int64_t at = row.lane * kWide; at < row.seen; at += kWidth * kWide) {
    const Numbers x = Load(p + at);
    const Numbers y = Load(g + at);
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      if (at + i < row.seen) sum += x.value[i] * y.value[i];
    }
  }
  sum = OverRow<kWidth, Sum>(sum);
  for (std::int64_t at = row.lane * kWide; at < shape.row_stride; at += kWidth * kWide) {
    const Numbers x = Load(p + at);
    Numbers y = Load(g + at);
#pragma unroll
    for (int i = 0; i < kWide; ++i) {
      y.value[i] = at + i < row.seen ? shape.scale * x.value[i] * (y.value[i] - sum) : 0.0F;
    }
    Store(g + at, y);
  }
}

// Short rows: a warp each, so that its threads are not idle.
constexpr std::int64_t kLongestOfWarp = 1024;

unsigned int BlocksOf(const SoftmaxShape& shape, int width) {
  const std::int64_t rows_per_block = kThreads / width;
  return static_cast<unsigned int>((shape.rows + rows_per_block - 1) / rows_per_block);
}

// ---- random numbers

__device__ std::uint32_t Mix(std::uint32_t x) {  // the finalizer of MurmurHash3
  x ^= x >> 16;
  x *= 0x85ebca6bU;
  x ^= x >> 13;
  x *= 0xc2b2ae35U;
  return x ^ x >> 16;
}

// The sum of four uniform bytes is near enough to a normal distribution.
__global__ void RandomKernel(__nv_bfloat16* values, std::int64_t elements, std::uint32_t seed) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < elements; i += stride) {
    const std::uint32_t bits =
        Mix(static_cast<std::uint32_t>(i) ^ Mix(static_cast<std::uint32_t>(i >> 32) + seed));
    const auto sum = static_cast<float>((bits & 0xffU) + (bits >> 8 & 0xffU) +
                                        (bits >> 16 & 0xffU) + (bits >> 24));
    values[i] = __float2bfloat16((sum - 510.0F) / 147.8F);
  }
}

// ---- stamps

__global__ void WriteStampKernel(StampValue* slot, StampValue value) {
  if (threadIdx.x < 7) slot->words[threadIdx.x] = value.words[threadIdx.x];
}

__global__ void CheckStampsKernel(const StampValue* stamps, int count, StampValue expected,
                                  std::uint32_t mask, std::uint32_t check, std::uint32_t* claimed,
                                  StampError* error) {
  for (int member = static_cast<int>(threadIdx.x); member < count;
       member += static_cast<int>(blockDim.x)) {
    bool same = true;
    for (int word = 0; word < 7; ++word) {
      const bool compared = (mask >> word & 1U) != 0;
      same = same && (!compared || stamps[member].words[word] == expected.words[word]);
    }
    if (same || atomicCAS(claimed, 0U, 1U) != 0U) continue;
    error->check = check;
    error->member = static_cast<std::uint32_t>(member);
    for (int word = 0; word < 7; ++word) error->found[word] = stamps[member].words[word];
    __threadfence_system();
    error->state = 1;
  }
}

}  // namespace

cudaError_t LaunchStreaming(const void* in, void* out, std::int64_t bytes, int blocks,
                            cudaStream_t stream) {
  const std::int64_t count = (bytes + 31) / 32;  // 16 bytes in, 16 out
  const std::int64_t needed = (count + kThreads - 1) / kThreads;
  const auto grid = static_cast<unsigned int>(needed < 1 ? 1 : needed < blocks ? needed : blocks);
  StreamingKernel<<<grid, kThreads, 0, stream>>>(static_cast<const uint4*>(in),
                                                 static_cast<uint4*>(out), count);
  return cudaGetLastError();
}

cudaError_t LaunchSpin(std::int64_t nanoseconds, cudaStream_t stream) {
  SpinKernel<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

cudaError_t LaunchSoftmax(void* scores, const SoftmaxShape& shape, cudaStream_t stream) {
  auto* const numbers = static_cast<__nv_bfloat16*>(scores);
  if (shape.row_stride <= kLongestOfWarp) {
    SoftmaxKernel<32><<<BlocksOf(shape, 32), kThreads, 0, stream>>>(numbers, shape);
  } else {
    SoftmaxKernel<kThreads><<<BlocksOf(shape, kThreads), kThreads, 0, stream>>>(numbers, shape);
  }
  return cudaGetLastError();
}

cudaError_t LaunchSoftmaxGradient(const void* probabilities, void* gradients,
                                  const SoftmaxShape& shape, cudaStream_t stream) {
  const auto* const p = static_cast<const __nv_bfloat16*>(probabilities);
  auto* const g = static_cast<__nv_bfloat16*>(gradients);
  if (shape.row_stride <= kLongestOfWarp) {
    SoftmaxGradientKernel<32><<<BlocksOf(shape, 32), kThreads, 0, stream>>>(p, g, shape);
  } else {
    SoftmaxGradientKernel<kThreads>
        <<<BlocksOf(shape, kThreads), kThreads, 0, stream>>>(p, g, shape);
  }
  return cudaGetLastError();
}

cudaError_t LaunchRandom(void* values, std::int64_t elements, std::uint32_t seed, int blocks,
                         cudaStream_t stream) {
  RandomKernel<<<static_cast<unsigned int>(blocks), kThreads, 0, stream>>>(
      static_cast<__nv_bfloat16*>(values), elements, seed);
  return cudaGetLastError();
}

cudaError_t LaunchWriteStamp(StampValue* slot, const StampValue& value, cudaStream_t stream) {
  WriteStampKernel<<<1, 32, 0, stream>>>(slot, value);
  return cudaGetLastError();
}

cudaError_t LaunchCheckStamps(const StampValue* stamps, int count, const StampValue& expected,
                              std::uint32_t mask, std::uint32_t check, std::uint32_t* claimed,
                              StampError* error, cudaStream_t stream) {
  CheckStampsKernel<<<1, 32, 0, stream>>>(stamps, count, expected, mask, check, claimed, error);
  return cudaGetLastError();
}

cudaError_t LookForCode() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, SpinKernel);
}

}  // namespace optimus::executor::cuda
