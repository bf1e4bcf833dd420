#pragma once
// CUDA events of a step: those of the runtime, which tell time, and those that streams of ours wait
// for, which do not. While a step is captured into a graph, an event stands for two things: a node
// that records it when the graph runs, and a dependency between captured streams, for which it has
// a twin.

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "executor/runtime/device.h"

namespace optimus::executor::cuda {

class EventTable {
 public:
  EventTable() = default;
  ~EventTable();
  EventTable(const EventTable&) = delete;
  EventTable& operator=(const EventTable&) = delete;

  // At least so many events of the runtime.
  absl::Status Reserve(std::uint32_t events);

  // A step begins: nothing has been recorded; `origin` is recorded on `stream` and compared with
  // the host's clock. `stream` must be idle.
  absl::Status Begin(cudaStream_t stream);
  // An event of this step that tells no time.
  absl::StatusOr<Event> AddInternal();

  // Enqueued on a stream; called by the thread that issues. Captured: the stream is.
  absl::Status Record(Event event, cudaStream_t stream, bool captured);
  absl::Status Wait(Event event, cudaStream_t stream, bool captured);
  // A graph was launched that records all events of the step when it runs.
  void SetAllRecorded();

  bool HasHappened(Event event) const;
  std::int64_t TimeNs(Event event) const;

 private:
  static constexpr Event kFirstInternal = Event{1} << 31;
  struct Recorded {
    std::atomic<bool> value{false};
  };
  cudaEvent_t Get(Event event) const;
  absl::Status FitClock(cudaStream_t stream);

  std::vector<cudaEvent_t> events_, internal_, twins_;
  std::unique_ptr<Recorded[]> recorded_;  // by event of the runtime
  std::size_t used_internal_ = 0;
  cudaEvent_t origin_ = nullptr, probe_ = nullptr;
  std::int64_t origin_ns_ = 0;
};

}  // namespace optimus::executor::cuda
