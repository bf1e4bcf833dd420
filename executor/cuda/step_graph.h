#pragma once
// A step as a CUDA graph: captured once from the streams that it is issued to, launched as a whole
// afterwards.

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "executor/cuda/command.h"

namespace optimus::executor::cuda {

class StepGraph {
 public:
  StepGraph() = default;
  ~StepGraph() { Clear(); }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  // True where the graph does what `commands` ask.
  bool Fits(const std::vector<Command>& commands) const;
  // Captures what `issue` enqueues on `streams`; the first one is where the others are forked from
  // and joined. UNAVAILABLE, with a hint, where that cannot be captured; a graph that does part of
  // it is never kept.
  absl::Status Capture(const std::vector<cudaStream_t>& streams, std::vector<Command> commands,
                       const std::function<absl::Status()>& issue);
  absl::Status Launch(cudaStream_t stream) const;
  void Clear();

 private:
  absl::Status CaptureInto(const std::vector<cudaStream_t>& streams,
                           const std::function<absl::Status()>& issue, cudaGraph_t* graph);

  std::vector<Command> commands_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace optimus::executor::cuda
