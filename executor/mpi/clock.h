#pragma once
// The difference between two hosts' clocks, from messages to and fro.

#include <cstdint>

#include "absl/types/span.h"

namespace optimus::executor {

struct PingPong {
  std::int64_t sent_ns = 0;      // this host's clock
  std::int64_t answered_ns = 0;  // the other host's, when it answered
  std::int64_t received_ns = 0;  // this host's clock
};

// Add it to this host's clock to get the other's. Takes the quickest round trip (the first of
// equals) and assumes that both of its ways took the same time: exact to half of that round trip.
// `rounds` is not empty.
std::int64_t ClockOffsetNs(absl::Span<const PingPong> rounds);

}  // namespace optimus::executor
