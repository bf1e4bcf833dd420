#include "tools/simulation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
#include "tools/engine_options.h"
#include "tools/file_kinds.h"
#include "tools/input_files.h"
#include "tools/planned_step.h"
#include "tools/resources.h"

namespace optimus::tools {
namespace {

using Clock = std::chrono::steady_clock;

// As it was asked for.
sim::Options AskedEngine(const SimulationOptions& options, const step::Hardware& hardware) {
  sim::Options engine = EngineOptions(hardware);
  engine.fidelity = options.fidelity;
  engine.record_spans = options.record_spans;
  engine.in_this_process = options.in_this_process;
  if (options.no_interference) engine.interference = false;
  return engine;
}

// What `engine` applies, and why nothing where it is nothing.
InterferenceReport AppliedInterference(const SimulationOptions& options,
                                       const step::Hardware& hardware, const CostModel& costs) {
  if (options.no_interference) return {{}, "--no-interference"};
  if (hardware.no_interference()) return {{}, "hardware.no_interference"};
  const Interference factors = costs.interference();
  const bool none = factors.kernel_under_nvlink == 1 && factors.kernel_under_nic == 1 &&
                    factors.collective_under_kernel == 1;
  return {factors, none ? "the profile has no interference" : ""};
}

// Finalists are judged as the step will be simulated.
PlanningOptions AskedPlanning(const SimulationOptions& options, step::Hardware hardware) {
  if (options.no_interference) hardware.set_no_interference(true);
  PlanningOptions planning = PlanBySimulator(hardware);
  planning.scheduler = options.scheduler;
  planning.exhaustive = options.exhaustive;
  return planning;
}

absl::Status CheckIsOptimus(const step::Experiment& experiment) {
  if (experiment.plan().strategy() == step::Plan::OPTIMUS) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "plan.strategy: is ", step::Plan::Strategy_Name(experiment.plan().strategy()),
      ", which has no encoders beside the LLM to plan; set plan.strategy: OPTIMUS (plan.layout is "
      "then the LLM's alone), or use optimus simulate"));
}

// Of a file that LoadExperiment refuses: a wrong strategy is said before what else is wrong. OK
// where the file does not say (it cannot be read, or has no plan).
absl::Status CheckFileIsOptimus(const std::string& path) {
  step::Experiment experiment;
  if (!ReadTextProto(path, experiment).ok() || !experiment.has_plan()) return absl::OkStatus();
  return CheckIsOptimus(experiment);
}

absl::StatusOr<Input> LoadFile(const std::string& path, const SimulationOptions& options) {
  if (IsScheduleFile(path) && options.profile.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a schedule file names no hardware; give --profile=NAME (h100-80gb, ...)"));
  }
  absl::StatusOr<Input> input = LoadInput(path, options.profile, options.pipeline);
  if (options.must_be_optimus) {
    OPTIMUS_RETURN_IF_ERROR(
        NameFile(path, input.ok() ? CheckIsOptimus(input->experiment) : CheckFileIsOptimus(path)));
  }
  return input;
}

}  // namespace

absl::StatusOr<Simulation> Simulation::Prepare(const std::string& path,
                                               const SimulationOptions& options) {
  const auto begin = Clock::now();
  OPTIMUS_ASSIGN_OR_RETURN(const Input input, LoadFile(path, options));
  OPTIMUS_ASSIGN_OR_RETURN(Simulation simulation, Prepare(input, options));
  simulation.elapsed_ = Clock::now() - begin;
  return simulation;
}

absl::StatusOr<Simulation> Simulation::Prepare(const Input& input,
                                               const SimulationOptions& options) {
  const auto begin = Clock::now();
  const std::string& path = input.path;
  Simulation simulation;
  simulation.path_ = path;
  OPTIMUS_ASSIGN_OR_RETURN(
      PlannedStep planned,
      PlanStep(input, nullptr, AskedPlanning(options, input.experiment.hardware())));
  simulation.name_ = input.name;
  simulation.costs_ = std::move(planned.costs);
  simulation.step_ = std::move(planned.step);
  simulation.optimus_ = std::move(planned.optimus);
  simulation.compare_ = options.compare;
  simulation.options_ = AskedEngine(options, simulation.step_.experiment.hardware());
  simulation.interference_ =
      AppliedInterference(options, simulation.step_.experiment.hardware(), *simulation.costs_);
  OPTIMUS_RETURN_IF_ERROR(NameFile(
      path, sim::ChooseFidelity(simulation.step_.schedule, *simulation.costs_, simulation.options_)
                .status()));
  if (options.require_fit && !MemoryIsKnown(simulation.step_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": --require-fit needs the memory of the plan, which a schedule or profiled stages "
        "do not say; leave the flag out"));
  }
  simulation.elapsed_ = Clock::now() - begin;
  return simulation;
}

absl::StatusOr<ir::Timeline> Simulation::RunSimgrid(const sim::Options& options) const {
  sim::SimGridRunner runner(*costs_, options);
  absl::StatusOr<ir::Timeline> timeline = runner.Run(step_.schedule);
  if (timeline.ok()) return timeline;
  if (path_.empty()) return timeline;
  return absl::Status(timeline.status().code(),
                      absl::StrCat(path_, " (", name_, "): ", timeline.status().message()));
}

// The same schedule with one effect after the other.
absl::Status Simulation::Compare() {
  StepComparison& comparison = optimus_->step;
  comparison.predicted = optimus_->plan.ranked.front().predicted;
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline alone,
                           ir::CriticalPathRunner(*costs_).Run(step_.schedule));
  comparison.alone = alone.step;
  comparison.simulated = comparison.shared = timeline_.step;
  if (!interference_.reason.empty()) return absl::OkStatus();  // there is none to be left out
  sim::Options without = options_;
  without.interference = false;
  without.record_spans = false;
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline shared, RunSimgrid(without));
  comparison.shared = shared.step;
  return absl::OkStatus();
}

absl::Status Simulation::Run() {
  const auto begin = Clock::now();
  OPTIMUS_ASSIGN_OR_RETURN(timeline_, RunSimgrid(options_));
  if (optimus_ && compare_) OPTIMUS_RETURN_IF_ERROR(Compare());
  elapsed_ += Clock::now() - begin;
  return absl::OkStatus();
}

absl::StatusOr<Report> Simulation::MakeReport() const {
  OPTIMUS_ASSIGN_OR_RETURN(Report report, tools::MakeReport(step_, *costs_, timeline_));
  report.file = path_;
  report.interference = interference_;
  report.optimus = optimus_;
  report.wall_s = std::chrono::duration<double>(elapsed_).count();
  report.peak_memory_mib = PeakMemoryMib();
  return report;
}

}  // namespace optimus::tools
