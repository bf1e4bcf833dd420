#pragma once
// The common clock of a file of ours: it counts from the earliest origin of a rank's clock.

#include <algorithm>
#include <cstdint>

#include "traces/recording/recording.h"

namespace optimus::traces {

inline std::int64_t ClockBase(const Recording& recording) {
  if (recording.ranks.empty()) return 0;
  std::int64_t base = recording.ranks.front().clock_origin_ns;
  for (const RecordedRank& rank : recording.ranks) base = std::min(base, rank.clock_origin_ns);
  return base;
}

// Nanoseconds from the common origin to a rank's. Clocks that are centuries apart have nothing in
// common: 0.
inline std::int64_t ClockOffset(std::int64_t origin_ns, std::int64_t base_ns) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t offset = 0;
  const bool overflows = __builtin_sub_overflow(origin_ns, base_ns, &offset);
  return overflows || offset < 0 || offset > kMost ? 0 : offset;
}

}  // namespace optimus::traces
