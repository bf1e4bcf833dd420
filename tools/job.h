#pragma once
// What rank 0 tells the others: schedules, prices, models. They read no file and plan nothing.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/numerics/numerics.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "tools/planned_step.h"

namespace optimus::tools {

struct Job {
  ir::Schedule schedule;
  std::shared_ptr<const hw::ProfileCostModel> costs;  // null: no prices are needed
  std::optional<executor::NumericsModel> numerics;    // where it was asked for
};

// `numerics`: with the models. FAILED_PRECONDITION for a schedule file, or profiled stages, then.
absl::StatusOr<std::string> EncodeJobs(absl::Span<const PlannedStep> steps, bool numerics);
absl::StatusOr<std::vector<Job>> DecodeJobs(const std::string& bytes);

}  // namespace optimus::tools
