#include "tools/simulation.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"
#include "schedule/ir/validate.h"
#include "tools/outputs.h"
#include "tools/printable.h"

namespace optimus::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Puts the file before a message that does not name it yet.
absl::Status NameFile(const std::string& path, const absl::Status& status) {
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return {status.code(), absl::StrCat(path, ": ", status.message())};
}

// The name of a file without folder and endings.
std::string Stem(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  const std::string stem = file.substr(0, file.find('.'));
  // A name becomes a string of protobuf, which holds UTF-8 only; a file's name can be anything.
  return Printable(stem) == stem ? stem : FileName(stem);
}

// Highest resident memory so far, of this process or of a child that it ran.
double PeakMemoryMib() {
  rusage self{}, children{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(std::max(self.ru_maxrss, children.ru_maxrss)) / 1024.0;
}

sim::Options EngineOptions(const SimulationOptions& options, const step::Hardware& hardware) {
  sim::Options engine;
  engine.fidelity = options.fidelity;
  engine.record_spans = options.record_spans;
  if (hardware.nodes_per_leaf() > 0) engine.nodes_per_leaf = hardware.nodes_per_leaf();
  if (hardware.oversubscription() > 0) engine.oversubscription = hardware.oversubscription();
  for (const auto& slow : hardware.slow_gpus()) {
    engine.slow_gpus.push_back({slow.rank(), slow.factor()});
  }
  return engine;
}

}  // namespace

bool IsScheduleFile(const std::string& path) {
  return absl::EndsWith(path, ".schedule.pb") || absl::EndsWith(path, ".schedule.textproto");
}

absl::Status Simulation::PrepareExperiment(const std::string& path) {
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment experiment, step::LoadExperiment(path));
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile profile, step::LoadExperimentProfile(experiment));
  costs_ = std::make_unique<hw::ProfileCostModel>(std::move(profile));
  OPTIMUS_ASSIGN_OR_RETURN(step_, step::BuildStep(experiment, *costs_));
  name_ = step_.experiment.name().empty() ? Stem(path) : step_.experiment.name();
  step_.experiment.set_name(name_);
  return absl::OkStatus();
}

absl::Status Simulation::PrepareSchedule(const std::string& path, const std::string& profile) {
  if (profile.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": a schedule file names no hardware; give --profile=NAME (h100-80gb, ...)"));
  }
  OPTIMUS_ASSIGN_OR_RETURN(step_.schedule, ir::ReadSchedule(path));
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile loaded, hw::LoadProfile(profile));
  costs_ = std::make_unique<hw::ProfileCostModel>(std::move(loaded));
  name_ = step_.schedule.name.empty() ? Stem(path) : step_.schedule.name;
  step_.schedule.name = name_;
  return absl::OkStatus();
}

absl::StatusOr<Simulation> Simulation::Prepare(const std::string& path,
                                               const SimulationOptions& options) {
  const auto begin = Clock::now();
  Simulation simulation;
  simulation.path_ = path;
  OPTIMUS_RETURN_IF_ERROR(NameFile(path, IsScheduleFile(path)
                                             ? simulation.PrepareSchedule(path, options.profile)
                                             : simulation.PrepareExperiment(path)));
  OPTIMUS_RETURN_IF_ERROR(NameFile(path, ir::Validate(simulation.step_.schedule)));
  simulation.options_ = EngineOptions(options, simulation.step_.experiment.hardware());
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

absl::Status Simulation::Run() {
  const auto begin = Clock::now();
  sim::SimGridRunner runner(*costs_, options_);
  absl::StatusOr<ir::Timeline> timeline = runner.Run(step_.schedule);
  if (!timeline.ok()) {
    return {timeline.status().code(),
            absl::StrCat(path_, " (", name_, "): ", timeline.status().message())};
  }
  timeline_ = *std::move(timeline);
  elapsed_ += Clock::now() - begin;
  return absl::OkStatus();
}

absl::StatusOr<Report> Simulation::MakeReport() const {
  OPTIMUS_ASSIGN_OR_RETURN(Report report, tools::MakeReport(step_, *costs_, timeline_));
  report.wall_s = std::chrono::duration<double>(elapsed_).count();
  report.peak_memory_mib = PeakMemoryMib();
  return report;
}

}  // namespace optimus::tools
