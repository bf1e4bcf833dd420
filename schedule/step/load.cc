#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/beside.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "schedule/step/check.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/check_strategy.h"
#include "schedule/step/layout.h"
#include "schedule/step/make_order.h"
#include "schedule/step/stack.h"
#include "schedule/step/step.h"

namespace optimus::step {
namespace {

// Encoders with a plan of their own: their tensor parallelism may be less than the LLM's, so only
// what holds for any is checked here.
absl::Status CheckEncoderModels(const Experiment& experiment) {
  Experiment unsharded = experiment;
  unsharded.mutable_plan()->set_tensor_parallel(1);
  return BuildStack(unsharded).status();
}

// Everything that needs no times: models, and every layout but those that weigh layers, which at
// least must have a layer for every virtual stage.
absl::Status CheckModelsAndLayout(const Experiment& experiment) {
  if (experiment.has_profiled()) return absl::OkStatus();
  const bool apart = experiment.plan().strategy() == Plan::OPTIMUS;
  if (apart) OPTIMUS_RETURN_IF_ERROR(CheckEncoderModels(experiment));
  OPTIMUS_ASSIGN_OR_RETURN(const Stack stack,
                           BuildStack(apart ? LlmAlone(experiment) : experiment));
  // Any times will do to see whether the layout is possible.
  const std::vector<Picoseconds> times(stack.layers(), Picoseconds(1));
  return LayOut(experiment.plan(), stack, times).status();
}

// A model or profile named by a path is looked for beside the experiment, so that it can be run
// from any directory. Names of the zoo have no extension.
void ResolvePath(const std::string& experiment, std::string& name_or_path) {
  const std::filesystem::path path(name_or_path);
  const bool is_path = path.extension() == ".textproto" || path.extension() == ".json";
  if (is_path) name_or_path = Beside(experiment, name_or_path);
}

void ResolvePaths(const std::string& path, Experiment& experiment) {
  ResolvePath(path, *experiment.mutable_llm());
  ResolvePath(path, *experiment.mutable_hardware()->mutable_profile());
  for (Encoder& encoder : *experiment.mutable_encoders()) {
    ResolvePath(path, *encoder.mutable_model());
  }
  std::string& schedule = *experiment.mutable_plan()->mutable_schedule_file();
  if (!schedule.empty()) schedule = Beside(path, schedule);
}

}  // namespace

absl::Status CompleteExperiment(Experiment& experiment) {
  FillDefaults(experiment);
  OPTIMUS_RETURN_IF_ERROR(CheckExperiment(experiment));
  OPTIMUS_RETURN_IF_ERROR(LoadExperimentProfile(experiment).status());
  OPTIMUS_RETURN_IF_ERROR(CheckOrder(experiment));
  return CheckModelsAndLayout(experiment);
}

absl::StatusOr<Experiment> ReadExperiment(const std::string& path) {
  Experiment experiment;
  OPTIMUS_RETURN_IF_ERROR(ReadTextProto(path, experiment));
  ResolvePaths(path, experiment);
  return experiment;
}

absl::StatusOr<Experiment> LoadExperiment(const std::string& path, const std::string& profile,
                                          std::optional<Plan::PipelineSchedule> schedule) {
  OPTIMUS_ASSIGN_OR_RETURN(Experiment experiment, ReadExperiment(path));
  if (!profile.empty()) experiment.mutable_hardware()->set_profile(profile);
  if (schedule.has_value()) UseSchedule(*schedule, experiment);
  if (absl::Status status = CompleteExperiment(experiment); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", std::string(status.message())));
  }
  return experiment;
}

absl::StatusOr<hw::HardwareProfile> LoadExperimentProfile(const Experiment& experiment) {
  auto profile = hw::LoadProfile(experiment.hardware().profile());
  if (profile.ok()) return profile;
  return absl::Status(profile.status().code(),
                      absl::StrCat("hardware.profile: ", std::string(profile.status().message())));
}

}  // namespace optimus::step
