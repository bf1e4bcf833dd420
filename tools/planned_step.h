#pragma once
// From a FILE (experiment or schedule) to a Schedule that can be run. In two parts, because a run
// is refused for its size before anything is planned, and a plan may be made again with a profile
// that was measured.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "schedule/step/step.h"
#include "tools/optimus_report.h"

namespace optimus::tools {

// What a FILE says.
struct Input {
  std::string path, name;
  bool is_schedule = false;
  step::Experiment experiment;                 // unless it is a schedule
  ir::Schedule schedule;                       // if it is one; valid
  std::optional<hw::HardwareProfile> profile;  // absent: a schedule, and no profile was given
  ir::Parallelism world;
};
// `profile`: of schedule files; of an experiment, instead of its own; may be empty. `pipeline`: of
// an experiment, instead of its plan.schedule; INVALID_ARGUMENT for a schedule file. Errors name
// the file.
absl::StatusOr<Input> LoadInput(
    const std::string& path, const std::string& profile,
    std::optional<step::Plan::PipelineSchedule> pipeline = std::nullopt);

// Of an experiment that is complete (step::CompleteExperiment) and a profile that may differ from
// the one that it names. Errors name the field only.
absl::StatusOr<Input> MakeInput(step::Experiment experiment, hw::HardwareProfile profile);

struct PlannedStep {
  std::shared_ptr<const hw::ProfileCostModel> costs;  // null: a schedule without a profile
  step::Step step;                                    // its Schedule is valid
  std::optional<OptimusReport> optimus;  // strategy OPTIMUS; `step` of it is not filled
};

struct PlanningOptions {
  std::optional<step::Optimus::Scheduler> scheduler;  // instead of the experiment's own
  bool exhaustive = false;                            // OPTIMUS: all splits
  // The step of a finalist of planning.
  std::function<absl::StatusOr<Picoseconds>(const ir::Schedule&, const CostModel&)> judge;
};

// The step with the prices of `profile` (null: as Input::profile).
absl::StatusOr<PlannedStep> PlanStep(const Input& input, const hw::HardwareProfile* profile,
                                     const PlanningOptions& options);

// Judges by the simulator of this build, on this hardware: the choice of `optimus plan`.
PlanningOptions PlanBySimulator(const step::Hardware& hardware);

}  // namespace optimus::tools
