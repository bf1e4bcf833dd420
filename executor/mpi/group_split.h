#pragma once
// Agreement of a new group's members on its number, which keeps its messages apart from those of
// all other groups that any of them is in.

#include "absl/status/statusor.h"
#include "executor/mpi/collective_task.h"

namespace optimus::executor {

// Called by all members: `ranks` and `name` as of Communicator::Split of `parent`. Over the first
// of them, which compares what they ask for: INVALID_ARGUMENT (own ranks), DATA_LOSS (they differ),
// RESOURCE_EXHAUSTED (no tags left), DEADLINE_EXCEEDED (the world's patience).
absl::StatusOr<GroupLink> SplitGroup(const GroupLink& parent, absl::Span<const std::int32_t> ranks,
                                     const std::string& name);

}  // namespace optimus::executor
