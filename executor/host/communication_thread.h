#pragma once
// The thread that runs all streams of a HostDevice but the compute stream, side by side.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/host/step_state.h"

namespace optimus::executor {

class CommunicationThread {
 public:
  explicit CommunicationThread(StepState& state) : state_(state) {}
  // Until StepState::quit.
  void Run();

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
  void Progress();
  absl::StatusOr<bool> Advance(Stream& stream);  // true: something has ended
  bool WaitIsOver(Stream& stream);
  absl::StatusOr<bool> RunTask(Stream& stream);
  absl::StatusOr<bool> PollTask(Stream& stream);
  void DropStep();

  // What the next sleep is like.
  struct Pause {
    std::int64_t until_ns = kForeverNs;
    bool seldom = false;  // it would be shorter if the compute thread were idle
  };
  Pause NextPause() const;
  void Sleep(const Pause& pause);
  bool MustNotSleep(const Pause& pause) const;

  StepState& state_;
  std::vector<Stream> streams_;  // those that are not done, by stream
};

}  // namespace optimus::executor
