#pragma once
// Numbers of point-to-point messages: the same on both sides, no two the same between two ranks.

#include <cstdint>
#include <vector>

#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

// For each rank of `recording`, for each of its operations that is a send or receive with a known
// peer, in order: the number of its message among those from the sender to the receiver. Messages
// are paired by group and tag, several of one tag in their order; without a tag, in order of start.
std::vector<std::vector<std::int32_t>> MessageTags(const Recording& recording);

// Whether an operation has a number there.
bool HasMessageTag(const Communication& communication);

}  // namespace optimus::traces::chakra
