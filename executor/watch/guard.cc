#include "executor/watch/guard.h"

#include <pthread.h>

#include <ctime>
#include <utility>

#include "executor/watch/termination.h"

namespace optimus::executor {
namespace {

// Seldom, because it takes the core from those who work. A signal wakes at once; what it asks for
// is then looked after more often.
constexpr timespec kPeriod{0, 200'000'000};
constexpr timespec kSignalledPeriod{0, 50'000'000};

}  // namespace

Guard::Guard(End end) : end_(std::move(end)), thread_([this] { Run(); }) {}

Guard::~Guard() {
  stop_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);  // wakes it; it holds the signal back
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
    if (stop_ || duty_ == nullptr) continue;
    if (const absl::Status status = duty_(); !status.ok()) end_(status);
  }
}

void Guard::WaitForSignal() {
  const sigset_t signals = TerminationSignals();
  siginfo_t signal{};
  if (sigtimedwait(&signals, &signal, HasTerminationSignal() ? &kSignalledPeriod : &kPeriod) < 0) {
    return;
  }
  if (stop_) return;
  if (SaysThatAllIsSaid(signal)) end_(absl::CancelledError(""));
  NoteTerminationSignal();
}

}  // namespace optimus::executor
