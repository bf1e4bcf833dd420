#pragma once
// Kernels by their shape alone, for tests: without FLOPs, and without the bytes that a shape gives.

#include <cstdint>
#include <string>

#include "base/kernel.h"

namespace optimus {

inline Kernel GemmKernel(const std::string& name, GemmShape shape) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = name;
  kernel.gemm = shape;
  return kernel;
}

inline Kernel AttentionKernel(AttentionShape shape) {
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.name = "attention";
  kernel.attention = shape;
  return kernel;
}

inline Kernel MemoryBoundKernel(std::int64_t bytes, const std::string& name = "norm") {
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.name = name;
  kernel.bytes = Bytes(bytes);
  return kernel;
}

}  // namespace optimus
