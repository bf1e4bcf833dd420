#include "executor/cuda/step_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/cuda/cuda_status.h"

namespace optimus::executor::cuda {
namespace {

// An event that orders streams; destroyed at the end of its scope, which captured streams allow.
class Order {
 public:
  ~Order() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Order() = default;
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  absl::Status Put(cudaStream_t first, const std::vector<cudaStream_t>& then) {
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    OPTIMUS_CUDA_RETURN_IF_ERROR(cudaEventRecord(event_, first));
    for (cudaStream_t stream : then) {
      OPTIMUS_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream, event_, 0));
    }
    return absl::OkStatus();
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

bool StepGraph::Fits(const std::vector<Command>& commands) const {
  return graph_ != nullptr && SameWork(commands_, commands);
}

absl::Status StepGraph::CaptureInto(const std::vector<cudaStream_t>& streams,
                                    const std::function<absl::Status()>& issue,
                                    cudaGraph_t* graph) {
  const std::vector<cudaStream_t> others(streams.begin() + 1, streams.end());
  std::vector<Order> joins(others.size());
  Order fork;
  OPTIMUS_CUDA_RETURN_IF_ERROR(
      cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
  absl::Status status = fork.Put(streams[0], others);
  if (status.ok()) status = issue();
  for (std::size_t i = 0; i < others.size() && status.ok(); ++i) {
    status = joins[i].Put(others[i], {streams[0]});
  }
  // Also after an error: the streams must leave the capture.
  const cudaError_t ended = cudaStreamEndCapture(streams[0], graph);
  if (status.ok()) status = CudaStatus(ended, "cudaStreamEndCapture");
  return status;
}

absl::Status StepGraph::Capture(const std::vector<cudaStream_t>& streams,
                                std::vector<Command> commands,
                                const std::function<absl::Status()>& issue) {
  Clear();
  cudaGraph_t graph = nullptr;
  absl::Status status = CaptureInto(streams, issue, &graph);
  if (status.ok()) {
    status = CudaStatus(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (!status.ok()) {
    Clear();
    return absl::UnavailableError(absl::StrCat("the step cannot be captured into a CUDA graph: ",
                                               status.message(), "; hint: run it without a graph"));
  }
  commands_ = std::move(commands);
  return absl::OkStatus();
}

absl::Status StepGraph::Launch(cudaStream_t stream) const {
  return CudaStatus(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch");
}

void StepGraph::Clear() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  graph_ = nullptr;
  commands_.clear();
}

}  // namespace optimus::executor::cuda
