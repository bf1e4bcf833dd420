#pragma once
// How a thread sleeps until another one has something for it. A wake-up costs a system call only
// where the thread really sleeps.
//
// The sleeper says that it is about to sleep (Prepare), looks once more at whatever it waits for,
// and then sleeps or thinks better of it (Cancel). Whoever has changed something calls Wake
// afterwards. Both sides use sequentially consistent atomics, so either the sleeper sees the change
// or the other sees that it sleeps.

#include <atomic>
#include <cstdint>
#include <ctime>
#include <limits>

namespace optimus::executor {

inline constexpr std::int64_t kForeverNs = std::numeric_limits<std::int64_t>::max();

inline timespec ToTimespec(std::int64_t time_ns) {
  timespec time{};
  time.tv_sec = time_ns / 1'000'000'000;
  time.tv_nsec = time_ns % 1'000'000'000;
  return time;
}

// The calling thread's timers are no longer delayed (timer slack).
void WakeExactly();

class Sleeper {
 public:
  void Prepare() { asleep_.store(1, std::memory_order_seq_cst); }
  void Cancel() { asleep_.store(0, std::memory_order_relaxed); }
  // After Prepare. Until Wake, or that moment of CLOCK_MONOTONIC; now and then for no reason.
  void SleepUntil(std::int64_t deadline_ns);
  // From any thread. What it is about has been stored, sequentially consistent, before.
  void Wake() {
    if (asleep_.load(std::memory_order_seq_cst) != 0) {
      WakeAsleep();
    }
  }

 private:
  void WakeAsleep();
  std::atomic<std::uint32_t> asleep_{0};
};

}  // namespace optimus::executor
