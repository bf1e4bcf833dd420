#pragma once
// The thread that runs the compute stream of a HostDevice.

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "executor/host/communication_thread.h"
#include "executor/host/step_state.h"

namespace optimus::executor {

class ComputeThread {
 public:
  // Runs a kernel and returns its nominal end (HostDevice::RunKernel).
  using RunKernel = std::function<absl::StatusOr<std::int64_t>(const Kernel&, std::int64_t)>;

  // `communication` is polled between kernels.
  ComputeThread(StepState& state, CommunicationThread& communication, RunKernel run_kernel)
      : state_(state), communication_(communication), run_kernel_(std::move(run_kernel)) {}
  // Until StepState::quit.
  void Run();
  // On this thread, within a kernel. False: the step was given up before that moment.
  bool SleepInKernelUntilNs(std::int64_t time_ns);

 private:
  bool WaitForStep(std::uint32_t seen);
  absl::Status RunStep();
  absl::Status RunCommand(StreamCursor& cursor);
  absl::Status Work(StreamCursor& cursor, const Command& command);
  void WaitFor(Event event);
  void GoIdle();
  bool stopping() const { return state_.given_up.load(std::memory_order_seq_cst); }

  StepState& state_;
  CommunicationThread& communication_;
  const RunKernel run_kernel_;
};

}  // namespace optimus::executor
