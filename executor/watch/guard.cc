#include "executor/watch/guard.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "absl/time/clock.h"
#include "executor/watch/termination.h"

namespace optimus::executor {
namespace {

// Seldom, because it takes the core from those who work. A signal wakes at once; what it asks for
// is then looked after more often.
constexpr timespec kPeriod{0, 200'000'000};
constexpr timespec kSignalledPeriod{0, 50'000'000};
constexpr absl::Duration kAfterAllIsSaid = absl::Seconds(3);

}  // namespace

Guard::Guard(End end) : end_(std::move(end)), thread_([this] { Run(); }) {}

Guard::~Guard() {
  stop_ = true;
  // Wakes it, ends nothing: it holds the signal back and waits for it.
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void Guard::SetDuty(Duty duty) {
  const std::lock_guard<std::mutex> lock(mutex_);
  duty_ = std::move(duty);
}

void Guard::Run() {
  HoldTerminationSignals();
  while (!stop_) {
    WaitForSignal();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) continue;
    if (const absl::Status status = Look(); !status.ok()) end_(status);
  }
}

absl::Status Guard::Look() {
  if (!said_.has_value()) return duty_ == nullptr ? absl::OkStatus() : duty_();
  const bool late = absl::Now() > *said_ + kAfterAllIsSaid;
  return late || TakeTerminationSignal() ? absl::CancelledError("") : absl::OkStatus();
}

void Guard::WaitForSignal() {
  const sigset_t signals = TerminationSignals();
  siginfo_t signal{};
  int got = 0;
  do {
    got = sigtimedwait(&signals, &signal, HasTerminationSignal() ? &kSignalledPeriod : &kPeriod);
  } while (got < 0 && errno == EINTR);  // it was stopped: what came meanwhile comes first
  if (got < 0 || stop_) return;
  if (!SaysThatAllIsSaid(signal)) {
    NoteTerminationSignal();
  } else if (!said_.has_value()) {
    said_ = absl::Now();
  }
}

}  // namespace optimus::executor
