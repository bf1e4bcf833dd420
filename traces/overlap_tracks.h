#pragma once
// How the operations of a lane are drawn where some of them overlap: on as few tracks as that
// takes.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

// `operations` (ids of `rank`, all with times) dealt to tracks, each in the order in which its
// slices begin. On the first track slices may lie within one another if `nest` says so (calls of a
// thread); elsewhere they follow one another. Takes n log n.
std::vector<std::vector<std::uint32_t>> DealToTracks(const RecordedRank& rank,
                                                     absl::Span<const std::uint32_t> operations,
                                                     bool nest);

}  // namespace optimus::traces
