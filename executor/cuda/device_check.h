#pragma once
// Whether the GPUs of a run will do, and one line that says why not.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace optimus::executor::cuda {

// What one rank found.
struct GpuFacts {
  std::string host;
  int local_rank = 0, local_size = 1;
  bool driver = false;     // an NVIDIA driver answers
  int driver_version = 0;  // newest CUDA it knows, as CUDA numbers it: 13000 is 13.0
  int needed_version = 0;  // what this build was made with
  int gpus = 0;            // that this rank may use
  std::string visible;     // CUDA_VISIBLE_DEVICES; "unset"
  std::string error;       // what CUDA said where counting or using them failed
  bool code = true;        // this build has code for it
  std::string name;        // "NVIDIA H100 80GB HBM3"
  std::string generation;  // "sm_90"
  std::string bus;         // PCI address: names the card on its host
  std::string libraries;   // what is wrong with cuBLAS or NCCL; empty: nothing
  int connections = 0;     // CUDA_DEVICE_MAX_CONNECTIONS
};

// "13.0" of 13000.
std::string CudaVersion(int version);

// The GPU that a rank uses: its local rank where it sees them all, the only one where the launcher
// shows each rank its own. -1: there are too few.
int DeviceOf(const GpuFacts& facts);

// UNAVAILABLE, one line with a hint.
absl::Status CheckGpu(const GpuFacts& facts);
// By rank, after each has passed CheckGpu: no two ranks may have one card.
absl::Status CheckCards(absl::Span<const GpuFacts> ranks);

// Streams that wait on the GPU for other ranks must not share a hardware queue.
inline constexpr int kNeededConnections = 32;

// To and from the text that is gathered.
std::string ToText(const GpuFacts& facts);
GpuFacts FromText(const std::string& text);

}  // namespace optimus::executor::cuda
