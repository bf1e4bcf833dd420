#pragma once
// Finds, before anything runs, what would deadlock or be wrong. INVALID_ARGUMENT naming program,
// operation and field: bad index or zero enum, wrong world, a size out of range (kLargestSize and
// its neighbours in schedule.h), a send without receive (or twice, or with another peer), a
// dependency cycle or one across streams that can never be met, collectives that members of a group
// issue in different orders, a layer or micro-batch that is missing or done twice.

#include "absl/status/status.h"
#include "schedule/ir/schedule.h"

namespace optimus::ir {

absl::Status Validate(const Schedule& schedule);

}  // namespace optimus::ir
