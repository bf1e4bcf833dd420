#pragma once
// The spans of a Timeline by rank, checked against the Schedule that they are of.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::traces {

// The times of all operations of one rank, by id in its program.
struct RankTimes {
  std::int32_t rank = 0;
  const ir::Program* program = nullptr;  // of the Schedule
  std::vector<Picoseconds> starts, ends;
};

// In order of the timeline, which is by rank. FAILED_PRECONDITION if the timeline has no spans;
// INVALID_ARGUMENT, naming rank and operation, if the spans of a rank are not exactly one for each
// operation of its program, two of one stream overlap, or ranks do not ascend. The Schedule must be
// valid and outlive what is returned.
absl::StatusOr<std::vector<RankTimes>> CollectTimes(const ir::Schedule& schedule,
                                                    const ir::Timeline& timeline);

}  // namespace optimus::traces
