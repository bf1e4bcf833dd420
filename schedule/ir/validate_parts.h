#pragma once
// The parts of Validate, in the order in which they run: each may rely on those before it.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/walk.h"

namespace optimus::ir::internal {

absl::Status CheckTables(const Schedule& schedule);  // world, modules, groups
absl::Status CheckWork(const Schedule& schedule);    // kernels, collectives, transfers
// Fields of every operation by themselves: kind, stream, tag, and every index in range.
absl::Status CheckOperations(const Schedule& schedule);
absl::Status CheckMessages(const Schedule& schedule);     // sends and receives pair up
absl::Status CheckCollectives(const Schedule& schedule);  // between programs: members agree
absl::Status CheckCoverage(const Schedule& schedule);     // nothing missing, nothing twice
absl::Status CheckDeadlock(const Schedule& schedule);

// "WHERE.FIELD: WHAT; hint: HINT"; `where` may be empty.
absl::Status FieldError(const std::string& where, absl::string_view field, absl::string_view what,
                        absl::string_view hint);
absl::Status AtLeast(const std::string& where, absl::string_view field, std::int64_t value,
                     std::int64_t least);

// "stage 1 (rank 8), operation 12 (llm layer 3 ...): FIELD: WHAT; hint: HINT".
absl::Status OperationError(const Schedule& schedule, OperationRef ref, absl::string_view field,
                            absl::string_view what, absl::string_view hint);

}  // namespace optimus::ir::internal
