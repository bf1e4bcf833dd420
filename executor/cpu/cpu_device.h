#pragma once
// The cpu backend's device: a rank is one core, and its kernels are oneDNN's on the compute thread.
//   kGemm: a matrix product in the layout of its pass (executor/cpu/training_gemm.h);
//   kAttention: executor/cpu/attention.h;
//   kMemoryBound: reads half of the bytes and writes half, whatever the element type;
//   kFixed: spins for that long.
// Operands are taken from an arena (executor/cpu/arena.h).

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/host/host_device.h"

namespace optimus::executor {

class CpuDevice : public HostDevice {
 public:
  // `bf16`: GEMMs and attention take and give bf16 and sum in f32; otherwise all is f32.
  // `region`: least size of each of the arena's two regions; 0: as UsualRegion says.
  CpuDevice(HostOptions options, bool bf16, Bytes region = Bytes(0));
  ~CpuDevice() override;

  // "AMD EPYC 9654, oneDNN 2.6.3 (avx512_core_bf16), f32, one core a rank"
  std::string Description() const override;
  // Between steps: whether all that kernels have written is finite.
  bool OutputsAreFinite() const;

 protected:
  // UNIMPLEMENTED: bf16 on a CPU that has none, a shape that oneDNN cannot do.
  // RESOURCE_EXHAUSTED: the operands of kernels take more than half of what this rank may fill
  // (HostDevice::memory_share).
  absl::Status PrepareKernels(absl::Span<const Kernel> kernels) override;
  absl::StatusOr<std::int64_t> RunKernel(const Kernel& kernel, std::int64_t ready_ns) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace optimus::executor
