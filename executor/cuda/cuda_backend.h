#pragma once
// The CUDA backend: one GPU a rank, kernels by cuBLASLt and our own, transport by NCCL. This header
// needs no CUDA header, so that who chooses a backend does not either.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "executor/runtime/communicator.h"
#include "executor/runtime/device.h"
#include "executor/runtime/world.h"

namespace optimus::executor {

struct CudaOptions {
  // Capture the first unchecked step into a CUDA graph and launch that afterwards.
  bool graph = false;
  // Stamps are written, sent and checked in steps (Stamp::step) below this one: give it the number
  // of warm-up steps. On a GPU each check is a kernel of its own (2 to 3 us on the stream, twice an
  // operation), which a measured step should not hold. Later steps are enqueued by the same code in
  // the same order. With a graph one step less is checked: the graph is captured in the next one,
  // and that should not be a measured step.
  int checked_steps = 2;
};

struct CudaBackend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> ranks;  // of the world; destroyed before the device
};

// All ranks of `world` call it together, before any other use of CUDA in the process; all get the
// same error. UNAVAILABLE: no GPU, a driver that is too old, a GPU this build has no code for,
// fewer GPUs than ranks on a node, NCCL could not connect.
absl::StatusOr<CudaBackend> MakeCuda(World& world, const CudaOptions& options);

// "CUDA 13.0, cuBLASLt, NCCL 2.28.9": what this build was made with.
std::string DescribeCuda();

}  // namespace optimus::executor
