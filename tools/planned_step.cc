#include "tools/planned_step.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/colocate/optimus.h"
#include "schedule/ir/serialize.h"
#include "schedule/ir/validate.h"
#include "tools/file_kinds.h"
#include "tools/input_files.h"
#include "tools/outputs.h"
#include "tools/printable.h"
#include "tools/simulate_schedule.h"

namespace optimus::tools {
namespace {

// The name of a file without folder and endings.
std::string Stem(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  const std::string stem = file.substr(0, file.find('.'));
  // A name becomes a string of protobuf, which holds UTF-8 only; a file's name can be anything.
  return Printable(stem) == stem ? stem : FileName(stem);
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

// A cluster of fewer GPUs than the plan wants.
absl::Status CheckClusterSize(const Input& input) {
  if (!input.profile.has_value() || !input.profile->has_cluster_gpus()) return absl::OkStatus();
  // Sizes of a plan are checked later: their product may be anything here.
  const double gpus = static_cast<double>(input.world.dp) * input.world.pp * input.world.tp;
  if (gpus <= input.profile->cluster_gpus().value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the plan is for ", gpus, " GPUs, but profile ", input.profile->name(),
      " is of a cluster of ", input.profile->cluster_gpus().value(), " (cluster_gpus)"));
}

absl::Status LoadSchedule(const std::string& profile, Input& input) {
  OPTIMUS_ASSIGN_OR_RETURN(input.schedule, ir::ReadSchedule(input.path));
  OPTIMUS_RETURN_IF_ERROR(ir::Validate(input.schedule));
  if (!profile.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(input.profile, LoadFlagProfile(profile));
  }
  input.name = input.schedule.name.empty() ? Stem(input.path) : input.schedule.name;
  input.schedule.name = input.name;
  input.world = input.schedule.world;
  return CheckClusterSize(input);
}

// What follows from experiment and profile.
absl::Status CompleteInput(Input& input) {
  OPTIMUS_RETURN_IF_ERROR(CheckMeasuredNodes(input.experiment, *input.profile));
  const step::Plan& plan = input.experiment.plan();
  input.world = {plan.data_parallel(), plan.pipeline_parallel(), plan.tensor_parallel()};
  return CheckClusterSize(input);
}

absl::Status LoadExperiment(const std::string& profile,
                            std::optional<step::Plan::PipelineSchedule> pipeline, Input& input) {
  if (!profile.empty()) OPTIMUS_RETURN_IF_ERROR(LoadFlagProfile(profile).status());
  OPTIMUS_ASSIGN_OR_RETURN(input.experiment, step::LoadExperiment(input.path, profile, pipeline));
  OPTIMUS_ASSIGN_OR_RETURN(input.profile, step::LoadExperimentProfile(input.experiment));
  input.name = input.experiment.name().empty() ? Stem(input.path) : input.experiment.name();
  input.experiment.set_name(input.name);
  return CompleteInput(input);
}

OptimusReport DescribePlan(const PlanningOptions& options, const step::Step& step,
                           colocate::OptimusPlan plan) {
  OptimusReport report;
  report.plan = std::move(plan);
  report.scheduler = SchedulerName(step.experiment.plan().optimus().scheduler());
  report.exhaustive = options.exhaustive;
  report.llm = step.schedule.world;
  for (std::size_t module = 1; module < step.schedule.modules.size(); ++module) {
    report.encoders.push_back(step.schedule.modules[module].name);
  }
  return report;
}

absl::Status PlanOptimus(step::Experiment experiment, const PlanningOptions& options,
                         PlannedStep& planned) {
  if (options.scheduler) {
    experiment.mutable_plan()->mutable_optimus()->set_scheduler(*options.scheduler);
  }
  colocate::PlanOptions planning;
  planning.exhaustive = options.exhaustive;
  if (options.judge) {
    planning.judge = [&](const ir::Schedule& schedule) {
      return options.judge(schedule, *planned.costs);
    };
  }
  absl::StatusOr<colocate::OptimusStep> built =
      colocate::BuildOptimusStep(experiment, *planned.costs, planning);
  if (absl::IsResourceExhausted(built.status())) {
    // The GPUs' memory, not ours: the input asks for what is not there.
    return absl::FailedPreconditionError(built.status().message());
  }
  if (!built.ok()) return built.status();
  if (built->plan.ranked.empty()) return absl::InternalError("planning gave no plan");
  planned.step = std::move(built->step);
  planned.optimus = DescribePlan(options, planned.step, std::move(built->plan));
  return absl::OkStatus();
}

absl::Status BuildStep(const step::Experiment& experiment, const PlanningOptions& options,
                       PlannedStep& planned) {
  if (experiment.plan().strategy() == step::Plan::OPTIMUS) {
    OPTIMUS_RETURN_IF_ERROR(PlanOptimus(experiment, options, planned));
  } else {
    OPTIMUS_ASSIGN_OR_RETURN(planned.step, step::BuildStep(experiment, *planned.costs));
  }
  planned.step.experiment.set_name(experiment.name());
  return ir::Validate(planned.step.schedule);
}

}  // namespace

absl::StatusOr<Input> LoadInput(const std::string& path, const std::string& profile,
                                std::optional<step::Plan::PipelineSchedule> pipeline) {
  Input input;
  input.path = path;
  input.is_schedule = IsScheduleFile(path);
  if (input.is_schedule && pipeline.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": --pipeline with a schedule file, which has its order already; give ",
                     "the experiment that it was made from"));
  }
  OPTIMUS_RETURN_IF_ERROR(NameFile(path, input.is_schedule
                                             ? LoadSchedule(profile, input)
                                             : LoadExperiment(profile, pipeline, input)));
  return input;
}

absl::StatusOr<Input> MakeInput(step::Experiment experiment, hw::HardwareProfile profile) {
  Input input;
  input.experiment = std::move(experiment);
  input.profile = std::move(profile);
  input.name = input.experiment.name();
  OPTIMUS_RETURN_IF_ERROR(CompleteInput(input));
  return input;
}

absl::StatusOr<PlannedStep> PlanStep(const Input& input, const hw::HardwareProfile* profile,
                                     const PlanningOptions& options) {
  PlannedStep planned;
  if (profile == nullptr && input.profile) profile = &*input.profile;
  if (profile != nullptr) planned.costs = std::make_shared<hw::ProfileCostModel>(*profile);
  if (input.is_schedule) {
    planned.step.schedule = input.schedule;
    return planned;
  }
  OPTIMUS_RETURN_IF_ERROR(NameFile(input.path, BuildStep(input.experiment, options, planned)));
  return planned;
}

PlanningOptions PlanBySimulator(const step::Hardware& hardware) {
  PlanningOptions options;
  SimulateOptions simulation;
  simulation.interference = !hardware.no_interference();
  simulation.hardware = hardware;
  options.judge = [simulation](const ir::Schedule& schedule,
                               const CostModel& costs) -> absl::StatusOr<Picoseconds> {
    OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline timeline,
                             SimulateSchedule(schedule, costs, simulation));
    return timeline.step;
  };
  return options;
}

}  // namespace optimus::tools
