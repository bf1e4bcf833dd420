#pragma once
// A Recording to a Perfetto protobuf trace (ui.perfetto.dev): one process a rank, one track a lane,
// one slice an operation with its kind as category and group, peer, bytes and FLOPs as arguments.
// Operations that overlap on one lane are drawn on further tracks of it ("stream 7, track 2");
// calls of a host thread may lie within one another. Arrows lead from a send to its receive, and
// along dependencies between lanes, where there are no more than kMostArrows of them.
//
// Times are rounded as those of a Timeline's trace (perfetto.h). They count from the earliest clock
// origin of all ranks: clocks are not aligned. Where origins are more than 106 days apart they are
// no common clock, and every rank counts from its own.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

inline constexpr std::size_t kMostArrows = 500'000;

// Operations without times, which no drawing can have.
std::int64_t CountUntimed(const Recording& recording);

// The serialized trace, without operations that have no time. FAILED_PRECONDITION where none has
// one. The Recording has passed CheckRecording.
absl::StatusOr<std::string> ToPerfetto(const Recording& recording);

}  // namespace optimus::traces
