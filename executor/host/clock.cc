#include <sys/prctl.h>

#include <cerrno>
#include <ctime>

#include "executor/host/host_device.h"
#include "executor/host/sleeper.h"

namespace optimus::executor {

void WakeExactly() {
  // The kernel may delay a thread's timers by its slack, 50 us unless told otherwise.
  thread_local const int kSet = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  static_cast<void>(kSet);
}

void SleepUntilNs(std::int64_t time_ns) {
  WakeExactly();
  const timespec until = ToTimespec(time_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace optimus::executor
