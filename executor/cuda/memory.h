#pragma once
// Memory of the GPU, and of the host that the GPU can reach.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "executor/cuda/cuda_status.h"

namespace optimus::executor::cuda {

struct FreeDeviceMemory {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct FreeHostMemory {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};

template <class T>
using DeviceMemory = std::unique_ptr<T, FreeDeviceMemory>;
template <class T>
using HostMemory = std::unique_ptr<T, FreeHostMemory>;

template <class T>
absl::StatusOr<DeviceMemory<T>> AllocateOnDevice(std::int64_t bytes) {
  void* memory = nullptr;
  OPTIMUS_CUDA_RETURN_IF_ERROR(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
  return DeviceMemory<T>(static_cast<T*>(memory));
}

// Pinned, and at one address for both sides.
template <class T>
absl::StatusOr<HostMemory<T>> AllocateOnHost(std::int64_t bytes) {
  void* memory = nullptr;
  OPTIMUS_CUDA_RETURN_IF_ERROR(
      cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocMapped));
  return HostMemory<T>(static_cast<T*>(memory));
}

}  // namespace optimus::executor::cuda
