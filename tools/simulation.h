#pragma once
// One FILE of `optimus simulate`: read, built and checked first, run later.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "schedule/colocate/optimus.h"
#include "schedule/ir/timeline.h"
#include "schedule/step/step.h"
#include "sim/simgrid_runner.h"
#include "tools/planned_step.h"
#include "tools/report.h"

namespace optimus::tools {

struct SimulationOptions {
  sim::Fidelity fidelity = sim::Fidelity::kAuto;
  std::optional<step::Optimus::Scheduler> scheduler;  // instead of the experiment's own
  bool exhaustive = false;                            // OPTIMUS: all splits
  bool must_be_optimus = false;                       // refuse every other strategy
  bool no_interference = false;
  std::string profile;  // of schedule files; of an experiment, instead of its own
  std::optional<step::Plan::PipelineSchedule> pipeline;  // instead of plan.schedule
  bool require_fit = false;
  bool record_spans = false;
  bool compare = true;           // OPTIMUS: also find out what each effect adds to the step
  bool in_this_process = false;  // sim::Options; then `compare` must not be set
};

class Simulation {
 public:
  // Everything that can fail on bad input: reads the file and its profile, builds the step,
  // validates the schedule and chooses the fidelity.
  static absl::StatusOr<Simulation> Prepare(const std::string& path,
                                            const SimulationOptions& options);
  // Of an input that has been read; `options.profile` and `options.pipeline` are part of it
  // already.
  static absl::StatusOr<Simulation> Prepare(const Input& input, const SimulationOptions& options);
  absl::Status Run();

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  const step::Step& step() const { return step_; }
  const hw::ProfileCostModel& costs() const { return *costs_; }
  bool is_optimus() const { return optimus_.has_value(); }
  const ir::Timeline& timeline() const { return timeline_; }  // after Run
  absl::StatusOr<Report> MakeReport() const;                  // after Run

 private:
  Simulation() = default;
  absl::StatusOr<ir::Timeline> RunSimgrid(const sim::Options& options) const;
  absl::Status Compare();

  std::string path_, name_;
  std::shared_ptr<const hw::ProfileCostModel> costs_;
  step::Step step_;
  sim::Options options_;
  bool compare_ = true;
  InterferenceReport interference_;
  std::optional<OptimusReport> optimus_;
  ir::Timeline timeline_;
  std::chrono::steady_clock::duration elapsed_{};
};

}  // namespace optimus::tools
