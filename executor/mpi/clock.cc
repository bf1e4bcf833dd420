#include "executor/mpi/clock.h"

#include <algorithm>

namespace optimus::executor {

std::int64_t ClockOffsetNs(absl::Span<const PingPong> rounds) {
  const PingPong& best =
      *std::min_element(rounds.begin(), rounds.end(), [](const PingPong& a, const PingPong& b) {
        return a.received_ns - a.sent_ns < b.received_ns - b.sent_ns;
      });
  return best.answered_ns - (best.sent_ns + (best.received_ns - best.sent_ns) / 2);
}

}  // namespace optimus::executor
