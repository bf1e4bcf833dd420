#pragma once
// A GPU as a Device. A step's calls are put down as commands and issued after Start by a thread of
// its own, with a lead (executor/cuda/gate.h), or as a CUDA graph.
//
// Stamps are written and checked in steps below CudaOptions::checked_steps only; the other commands
// are the same in all steps.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/command.h"
#include "executor/cuda/cuda_backend.h"
#include "executor/cuda/event_table.h"
#include "executor/cuda/gate.h"
#include "executor/cuda/issuer.h"
#include "executor/cuda/launcher.h"
#include "executor/cuda/libraries.h"
#include "executor/cuda/stamp_table.h"
#include "executor/cuda/step_graph.h"
#include "executor/runtime/device.h"

namespace optimus::executor::cuda {

class CudaDevice : public Device {
 public:
  // On GPU `ordinal`, which becomes the calling thread's.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(int ordinal, const CudaOptions& options,
                                                            const Libraries& libraries);
  ~CudaDevice() override;

  std::string Description() const override;
  absl::Status Prepare(std::uint32_t events, std::uint32_t slots,
                       absl::Span<const Kernel> kernels) override;
  absl::Status Begin() override;
  void Wait(ir::Stream stream, Event event) override;
  void Record(ir::Stream stream, Event event) override;
  absl::Status Launch(ir::Stream stream, const Kernel& kernel) override;
  absl::Status LaunchHost(ir::Stream stream, std::function<absl::Status()> work) override;
  void WriteStamp(ir::Stream stream, std::uint32_t slot, const Stamp& stamp) override;
  void CheckStamp(ir::Stream stream, std::uint32_t slot, const Stamp& expected,
                  const std::function<std::string(const Stamp&)>* text) override;
  absl::Status Start() override;
  absl::StatusOr<bool> Synchronize(absl::Duration limit) override;
  bool HasHappened(Event event) const override { return events_.HasHappened(event); }
  std::int64_t TimeNs(Event event) const override { return events_.TimeNs(event); }
  Bytes memory() const override { return memory_; }

  // For communicators.
  static int IndexOf(ir::Stream stream) { return static_cast<int>(stream); }
  // A stream beside those of the schedule, of a communication stream's priority.
  absl::StatusOr<int> AddStream();
  int streams() const { return static_cast<int>(streams_.size()); }
  cudaStream_t stream(int index) const { return streams_[static_cast<std::size_t>(index)]; }
  void Enqueue(Command command) { Add(std::move(command)); }
  void WaitFor(int stream, Event event);
  void RecordOn(int stream, Event event);
  // An event of this step that tells no time.
  absl::StatusOr<Event> AddEvent() { return events_.AddInternal(); }
  Arena& arena() { return launcher_->arena(); }
  StampTable& stamps() { return stamps_; }
  // Whether what carries this stamp is checked.
  bool Checks(const Stamp& stamp) const {
    return stamp.step >= 0 && stamp.step < options_.checked_steps - (options_.graph ? 1 : 0);
  }
  // Called by Synchronize every few milliseconds; its error ends the step.
  int AddWatch(std::function<absl::Status()> watch);
  void RemoveWatch(int id) { watches_.erase(id); }
  // True while the step has not come to its end, or never will: then communicators are aborted.
  bool unfinished() const { return running_ || failed_; }
  void StopIssuing();

 private:
  CudaDevice(const CudaOptions& options, const Libraries& libraries)
      : options_(options), libraries_(libraries) {}
  absl::Status Open(int ordinal);
  void Add(Command command);
  bool IsSlot(std::uint32_t slot);
  absl::StatusOr<int> NewStream(bool communication);
  // On the issuing thread.
  absl::Status RunStep();
  absl::Status RunGraph();
  absl::Status HoldStreams();
  absl::Status IssueAll(bool captured);
  absl::Status IssueOne(const Command& command, bool captured);
  absl::Status MarkEnds();
  // Of Synchronize.
  absl::Status FindError();
  absl::StatusOr<bool> HasEnded() const;

  const CudaOptions options_;
  const Libraries& libraries_;
  std::string description_;
  Bytes memory_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> ends_;  // by stream: of what it has in this step
  cudaEvent_t held_ = nullptr;     // the gate is open
  std::unique_ptr<Launcher> launcher_;
  StampTable stamps_;
  EventTable events_;
  std::map<int, std::function<absl::Status()>> watches_;
  int next_watch_ = 0;

  // The step.
  std::vector<Command> commands_;
  std::vector<bool> used_;              // by stream
  std::vector<bool> recorded_in_step_;  // by event of the runtime
  absl::Status enqueue_error_;          // the first of a call that returns none
  bool checked_ = false;                // it has stamps
  bool running_ = false, failed_ = false;
  std::int64_t next_watch_ns_ = 0;
  Gate gate_;
  StepGraph graph_;
  int graph_generation_ = -1;
  std::unique_ptr<Issuer> issuer_;  // last: it uses all others
};

}  // namespace optimus::executor::cuda
