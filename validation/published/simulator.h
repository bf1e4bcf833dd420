#pragma once
// What a data set needs of the simulator: steps are built here and run by a function from outside,
// since this folder knows no runner.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"
#include "schedule/step/step.h"

namespace optimus::validation {

// Runs a valid Schedule; spans are recorded where asked for.
using RunSchedule = std::function<absl::StatusOr<ir::Timeline>(const ir::Schedule&,
                                                               const CostModel&, bool with_spans)>;

class Simulator {
 public:
  explicit Simulator(RunSchedule run) : run_(std::move(run)) {}

  // Prices of a profile, by zoo name or path; each profile is read once.
  absl::StatusOr<const hw::ProfileCostModel*> Costs(const std::string& profile);
  // Builds the step and checks its Schedule.
  absl::StatusOr<step::Step> Build(const step::Experiment& experiment);
  absl::StatusOr<ir::Timeline> Run(const step::Step& step, bool with_spans = false);
  // Build and Run.
  absl::StatusOr<Picoseconds> StepTime(const step::Experiment& experiment);
  // Whether every stage's memory fits into a GPU.
  absl::StatusOr<bool> Fits(const step::Step& step);

  int runs() const { return runs_; }
  // Profiles that were used, by name.
  const std::map<std::string, std::unique_ptr<const hw::ProfileCostModel>>& profiles() const {
    return costs_;
  }

 private:
  RunSchedule run_;
  std::map<std::string, std::unique_ptr<const hw::ProfileCostModel>> costs_;
  int runs_ = 0;
};

}  // namespace optimus::validation
