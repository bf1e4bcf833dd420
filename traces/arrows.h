#pragma once
// The arrows of a drawn Recording: from a send to its receive, and along dependencies that lead
// from one lane to another.

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

struct ArrowEnd {
  std::uint32_t op = 0;
  std::uint64_t arrow = 0;  // from 1
  enum class Where : std::uint8_t { kFrom, kToBegin, kToEnd } where = Where::kFrom;
};

// By rank (index into Recording::ranks), in order of operations. `time` is the drawn time of an
// instant of a rank: no arrow leads back in it, or to its own instant. Arrows along dependencies
// are left out where there would be more than `most` of all.
using DrawnTime = std::function<std::uint64_t(const RecordedRank&, Picoseconds)>;
std::vector<std::vector<ArrowEnd>> FindArrows(const Recording& recording, const DrawnTime& time,
                                              std::size_t most);

// Those of one operation.
absl::Span<const ArrowEnd> ArrowsOf(const std::vector<ArrowEnd>& of_rank, std::uint32_t op);

}  // namespace optimus::traces
