#include "executor/host/sleeper.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace optimus::executor {
namespace {

long Futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value,
           const timespec* until) {
  static_assert(sizeof(*word) == sizeof(std::uint32_t));
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation | FUTEX_PRIVATE_FLAG,
                 value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void Sleeper::SleepUntil(std::int64_t deadline_ns) {
  if (asleep_.load(std::memory_order_seq_cst) == 1) {
    // Unlike FUTEX_WAIT, this one's time is absolute, and of CLOCK_MONOTONIC.
    const timespec until = ToTimespec(deadline_ns);
    Futex(&asleep_, FUTEX_WAIT_BITSET, 1, deadline_ns == kForeverNs ? nullptr : &until);
  }
  asleep_.store(0, std::memory_order_seq_cst);
}

void Sleeper::WakeAsleep() {
  // Of several who wake it, one pays.
  if (asleep_.exchange(0, std::memory_order_seq_cst) == 1) {
    Futex(&asleep_, FUTEX_WAKE, 1, nullptr);
  }
}

}  // namespace optimus::executor
