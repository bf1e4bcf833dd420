#include "executor/watch/termination.h"

#include <atomic>
#include <ctime>

namespace optimus::executor {
namespace {

constexpr int kAllIsSaid = 0x0971;  // any number that nobody else sends

std::atomic<bool> noted{false};

}  // namespace

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  return signals;
}

void HoldTerminationSignals() {
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

bool TakeTerminationSignal() {
  if (noted.exchange(false)) return true;
  const sigset_t signals = TerminationSignals();
  const timespec now{0, 0};
  return sigtimedwait(&signals, nullptr, &now) > 0;
}

void NoteTerminationSignal() { noted = true; }

bool HasTerminationSignal() { return noted; }

void TellThatAllIsSaid(std::int32_t pid) {
  sigval mark{};
  mark.sival_int = kAllIsSaid;
  sigqueue(pid, SIGTERM, mark);
}

bool SaysThatAllIsSaid(const siginfo_t& signal) {
  return signal.si_code == SI_QUEUE && signal.si_value.sival_int == kAllIsSaid;
}

}  // namespace optimus::executor
