#pragma once
// Streams and events on the CPU. Two threads a rank: the compute thread runs kCompute, the
// communication thread runs all other streams side by side as a small event loop of asynchronous
// tasks. A waiting thread leaves its core to others:
//   - the compute thread sleeps until the event that it needs is set;
//   - the communication thread sleeps while nothing is in flight; while something is, it polls:
//     often where the compute thread is idle, seldom where it computes (the compute thread itself
//     polls between kernels), and not before the moment that a task names.
// So a rank can be pinned to one core, and 64 ranks can share two.
//
// Two clocks: events record the moment they really happened (TimeNs). Beside it every operation has
// a nominal end, which a kernel or task returns and the next operation gets as `ready_ns` (the
// latest nominal end of what it waited for; where there is nothing, the moment at which the step's
// first operation begins). Real kernels return now; emulated ones return
// ready + duration, so that what a sleep overshoots does not add up.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/host/machine_memory.h"
#include "executor/runtime/device.h"
#include "executor/runtime/this_host.h"

namespace optimus::executor {

// Sleeps until that moment of NowNs(), exact to some microseconds (it sets the calling thread's
// timer slack); returns at once if it is past.
void SleepUntilNs(std::int64_t time_ns);

// The communication of one operation. Its calls come from the communication thread, or from the
// compute thread between two kernels; one at a time, over all tasks of a device.
class HostTask {
 public:
  virtual ~HostTask() = default;
  // Its stream has come to it. Must not block.
  virtual absl::Status Start(std::int64_t ready_ns) = 0;
  // The nominal end once it has ended, else nothing. Must not block.
  virtual absl::StatusOr<std::optional<std::int64_t>> Poll() = 0;
  // Polling before this moment is of no use (0: unknown).
  virtual std::int64_t NotBeforeNs() const { return 0; }
};

struct HostOptions {
  int ranks_of_machine = 1;  // that share its memory; this one is one of them
  int core = -1;             // both threads are pinned to this CPU; -1: they are not
  // How often what is in flight is polled:
  //   - while the compute thread is idle; 0: all the time, but it yields the core in between. Where
  //     poll_idle_longest is longer, the pause grows up to it, as an eighth of the time in which no
  //     operation has begun or ended;
  //   - while it computes: after a kernel, by the compute thread itself, where the last poll is so
  //     long ago. That costs no switch of threads;
  //   - within a long kernel, by the communication thread. That costs a timer and two switches, 20
  //     us on a virtual machine.
  absl::Duration poll_idle = absl::Microseconds(5);
  absl::Duration poll_idle_longest = absl::ZeroDuration();
  absl::Duration poll_busy = absl::Microseconds(200);
  absl::Duration poll_in_kernel = absl::Milliseconds(2);
  // How often SetProgress' hook is called at least within a step while nothing is in flight: others
  // may need it.
  absl::Duration poll_for_others = absl::Milliseconds(2);
  // How often SetProgress' hook is called between steps.
  absl::Duration poll_between_steps = absl::Milliseconds(5);
};

// What is enqueued runs from Start on; nothing can be enqueued after it until the next Begin. An
// error of any operation gives the step up: both threads drop what is left, Synchronize returns the
// error (once they have, or at its limit), and another Begin is refused. Misuse (an event out of
// range, recorded twice, or waited for and recorded nowhere) is refused by Start.
class HostDevice : public Device {
 public:
  explicit HostDevice(HostOptions options);
  // A derived class calls StopThreads first: its RunKernel may be running.
  ~HostDevice() override;

  absl::Status Begin() final;
  void Wait(ir::Stream stream, Event event) final;
  void Record(ir::Stream stream, Event event) final;
  // kCompute only; UNIMPLEMENTED on another stream.
  absl::Status Launch(ir::Stream stream, const Kernel& kernel) final;
  absl::Status LaunchHost(ir::Stream stream, std::function<absl::Status()> work) final;
  void WriteStamp(ir::Stream stream, std::uint32_t slot, const Stamp& stamp) final;
  void CheckStamp(ir::Stream stream, std::uint32_t slot, const Stamp& expected,
                  const std::function<std::string(const Stamp&)>* text) final;
  absl::Status Start() final;
  absl::StatusOr<bool> Synchronize(absl::Duration limit) final;
  bool HasHappened(Event event) const final;
  std::int64_t TimeNs(Event event) const final;
  Bytes memory() const override;  // of the machine
  // Of it, what this rank may fill: as it was when the device was made.
  const MemoryShare& memory_share() const;
  // Calls PrepareKernels.
  absl::Status Prepare(std::uint32_t events, std::uint32_t slots,
                       absl::Span<const Kernel> kernels) final;

  // For communicators: any stream but kCompute. The task is destroyed on some thread once it has
  // ended, or when the step is given up.
  absl::Status Enqueue(ir::Stream stream, std::unique_ptr<HostTask> task);
  // Called on every round of polling, by the thread that polls, and between steps as well (progress
  // of a library that has none of its own). Between steps only; once it has returned, the hook that
  // was set before is not called any more.
  void SetProgress(std::function<void()> progress);
  // Gives up a step that has not ended (its error is CANCELLED) and waits until both threads have
  // dropped it, so at most for the kernel that runs. Then no task is left: a communicator's
  // destructor calls it. Nothing happens where no step is unfinished.
  void GiveUp();

 protected:
  // For destructors of derived classes: GiveUp, and the threads end. The device is then of no use.
  void StopThreads();
  // The nominal time of an event that has happened; 0 of others. After Synchronize gave true.
  std::int64_t NominalTimeNs(Event event) const;
  // For RunKernel: sleeps until that moment; CANCELLED as soon as the step is given up.
  absl::Status SleepInKernelUntilNs(std::int64_t time_ns);
  virtual absl::Status PrepareKernels(absl::Span<const Kernel> kernels) = 0;
  // Runs a kernel on the calling (compute) thread and returns its nominal end.
  virtual absl::StatusOr<std::int64_t> RunKernel(const Kernel& kernel, std::int64_t ready_ns) = 0;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace optimus::executor
