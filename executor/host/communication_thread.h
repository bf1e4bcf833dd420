#pragma once
// The thread that runs all streams of a HostDevice but the compute stream, side by side.

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/host/step_state.h"

namespace optimus::executor {

class CommunicationThread {
 public:
  explicit CommunicationThread(StepState& state);
  // Until StepState::quit.
  void Run();
  // For the compute thread, between kernels: if polling is due and this thread sleeps, does a round
  // in its place.
  absl::Status HelpIfDue();

 private:
  struct Stream : StreamCursor {
    HostTask* task = nullptr;        // in flight
    std::int64_t not_before_ns = 0;  // of it
    bool waits = false;              // for the event of its command, and has announced it
  };

  bool WaitForStep(std::uint32_t seen);
  void RunStep();
  void Reset();
  absl::Status Rounds();
  absl::StatusOr<bool> Round();  // true: something has ended
  void Progress();
  absl::StatusOr<bool> Advance(Stream& stream);  // true: something has ended
  bool WaitIsOver(Stream& stream);
  absl::StatusOr<bool> RunTask(Stream& stream);
  absl::StatusOr<bool> PollTask(Stream& stream);
  void DropStep();

  // What the next sleep is like.
  struct Pause {
    std::int64_t until_ns = kForeverNs;
    Nap nap = Nap::kNone;
    bool yields = false;  // it does not sleep, but lets others run
  };
  Pause NextPause() const;
  std::int64_t IdlePauseNs(std::int64_t now_ns) const;
  void Sleep(const Pause& pause);
  bool MustNotSleep(const Pause& pause) const;

  StepState& state_;
  const std::int64_t poll_idle_ns_, poll_idle_longest_ns_, poll_busy_ns_, poll_in_kernel_ns_,
      poll_for_others_ns_;
  // Held by this thread within a step, unless it sleeps; then the compute thread may have it.
  std::mutex rounds_mutex_;
  std::vector<Stream> streams_;  // those that are not done, by stream
  std::int64_t sleeps_until_ns_ = 0;
  std::int64_t changed_ns_ = 0;  // an operation began or ended
};

}  // namespace optimus::executor
