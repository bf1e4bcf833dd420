#include "tools/simulation.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
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
  engine.interference = !options.no_interference && !hardware.no_interference();
  if (hardware.nodes_per_leaf() > 0) engine.nodes_per_leaf = hardware.nodes_per_leaf();
  if (hardware.oversubscription() > 0) engine.oversubscription = hardware.oversubscription();
  for (const auto& slow : hardware.slow_gpus()) {
    engine.slow_gpus.push_back({slow.rank(), slow.factor()});
  }
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

// A finalist of planning, as it will be simulated.
absl::StatusOr<Picoseconds> JudgedStep(const ir::Schedule& schedule, const CostModel& costs,
                                       const SimulationOptions& options,
                                       const step::Hardware& hardware) {
  sim::Options engine = EngineOptions(options, hardware);
  engine.fidelity = sim::Fidelity::kAuto;  // the same step, sooner
  engine.record_spans = false;
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline,
                           sim::SimGridRunner(costs, engine).Run(schedule));
  return timeline.step;
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

absl::StatusOr<hw::HardwareProfile> LoadFlagProfile(const std::string& profile) {
  absl::StatusOr<hw::HardwareProfile> loaded = hw::LoadProfile(profile);
  if (loaded.ok()) return loaded;
  return absl::Status(loaded.status().code(),
                      absl::StrCat("--profile: ", loaded.status().message()));
}

// A profile that was measured on few GPUs has nodes of few: tensor-parallel groups that are larger
// would go over its network, which nobody measured for them.
absl::Status CheckMeasuredNodes(const step::Experiment& experiment,
                                const hw::HardwareProfile& profile) {
  const int tensor_parallel = experiment.plan().tensor_parallel();
  const double node = profile.gpus_per_node().value();
  if (profile.measured_on().empty() || tensor_parallel <= node) return absl::OkStatus();
  const auto& transfers = profile.measured_transfers();
  if (std::any_of(transfers.begin(), transfers.end(), [&](const hw::MeasuredTransfer& transfer) {
        return transfer.between_nodes() && transfer.ranks() == tensor_parallel &&
               transfer.kind() != hw::MeasuredTransfer::SEND;
      })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "hardware.profile: ", profile.name(), " was measured with ", node,
      " GPUs a node, which tensor-parallel groups of ", tensor_parallel,
      " do not fit into; hint: measure it with as many, or set its gpus_per_node and nvlink by "
      "hand"));
}

}  // namespace

bool IsScheduleFile(const std::string& path) {
  return absl::EndsWith(path, ".schedule.pb") || absl::EndsWith(path, ".schedule.textproto");
}

bool IsTimelineFile(const std::string& path) {
  return absl::EndsWith(path, ".timeline.pb") || absl::EndsWith(path, ".timeline.textproto");
}

absl::Status Simulation::BuildStep(step::Experiment experiment, const SimulationOptions& options) {
  if (experiment.plan().strategy() != step::Plan::OPTIMUS) {
    OPTIMUS_ASSIGN_OR_RETURN(step_, step::BuildStep(experiment, *costs_));
    return absl::OkStatus();
  }
  step::Optimus& plan = *experiment.mutable_plan()->mutable_optimus();
  if (options.scheduler) plan.set_scheduler(*options.scheduler);
  colocate::PlanOptions planning;
  planning.exhaustive = options.exhaustive;
  planning.judge = [&](const ir::Schedule& schedule) {
    return JudgedStep(schedule, *costs_, options, experiment.hardware());
  };
  absl::StatusOr<colocate::OptimusStep> built =
      colocate::BuildOptimusStep(experiment, *costs_, planning);
  if (absl::IsResourceExhausted(built.status())) {
    // The GPUs' memory, not ours: the input asks for what is not there.
    return absl::FailedPreconditionError(built.status().message());
  }
  if (!built.ok()) return built.status();
  if (built->plan.ranked.empty()) return absl::InternalError("planning gave no plan");
  step_ = std::move(built->step);
  optimus_.emplace();
  optimus_->plan = std::move(built->plan);
  optimus_->scheduler = SchedulerName(plan.scheduler());
  optimus_->exhaustive = options.exhaustive;
  optimus_->llm = step_.schedule.world;
  const std::vector<ir::ModuleInfo>& modules = step_.schedule.modules;
  for (std::size_t module = 1; module < modules.size(); ++module) {
    optimus_->encoders.push_back(modules[module].name);
  }
  return absl::OkStatus();
}

absl::Status Simulation::PrepareExperiment(const std::string& path,
                                           const SimulationOptions& options) {
  if (!options.profile.empty()) {
    OPTIMUS_RETURN_IF_ERROR(LoadFlagProfile(options.profile).status());
  }
  absl::StatusOr<step::Experiment> loaded = step::LoadExperiment(path, options.profile);
  if (options.must_be_optimus) {
    OPTIMUS_RETURN_IF_ERROR(loaded.ok() ? CheckIsOptimus(*loaded) : CheckFileIsOptimus(path));
  }
  OPTIMUS_ASSIGN_OR_RETURN(const step::Experiment experiment, std::move(loaded));
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile profile, step::LoadExperimentProfile(experiment));
  OPTIMUS_RETURN_IF_ERROR(CheckMeasuredNodes(experiment, profile));
  costs_ = std::make_unique<hw::ProfileCostModel>(std::move(profile));
  OPTIMUS_RETURN_IF_ERROR(BuildStep(experiment, options));
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
  OPTIMUS_ASSIGN_OR_RETURN(hw::HardwareProfile loaded, LoadFlagProfile(profile));
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
                                             : simulation.PrepareExperiment(path, options)));
  OPTIMUS_RETURN_IF_ERROR(NameFile(path, ir::Validate(simulation.step_.schedule)));
  simulation.options_ = EngineOptions(options, simulation.step_.experiment.hardware());
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
  if (optimus_) OPTIMUS_RETURN_IF_ERROR(Compare());
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
