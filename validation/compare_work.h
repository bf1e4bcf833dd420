#pragma once
// The operations that two timelines share. Internal to validation; others use Compare.

#include "absl/status/status.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"
#include "validation/compare_timelines.h"

namespace optimus::validation {

// Fills in `work` and the numbers of operations. A rank that both timelines recorded must have the
// same operations in both; the spans of other ranks are in one only.
absl::Status CompareWork(const ir::Timeline& simulated, const ir::Timeline& measured,
                         const ir::Schedule* schedule, Comparison& comparison);

}  // namespace optimus::validation
