// The end of `optimus validate run`, at rank 0: profile, simulation, comparison, report.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "hw_profiles/from_measurements.h"
#include "schedule/ir/serialize.h"
#include "tools/exit_codes.h"
#include "tools/input_files.h"
#include "tools/measuring.h"
#include "tools/outputs.h"
#include "tools/profile_text.h"
#include "tools/report.h"
#include "tools/scaled_timeline.h"
#include "tools/simulate_schedule.h"
#include "tools/validate_on_ranks.h"
#include "tools/validation_json.h"
#include "tools/validation_text.h"

namespace optimus::tools {
namespace {

// What --out holds: of the whole run, and of every experiment after its name.
constexpr char kReportJson[] = "validation.json";
constexpr char kReportText[] = "validation.txt";
constexpr char kProfile[] = "profile.textproto";
constexpr char kSchedule[] = ".schedule.pb";
constexpr char kSimulated[] = ".simulated.timeline.pb";
constexpr char kMeasured[] = ".measured.timeline.pb";

std::string StrategyText(const step::Experiment& experiment) {
  if (!experiment.has_plan()) return "";
  const step::Plan& plan = experiment.plan();
  if (plan.strategy() != step::Plan::PIPELINE) return step::Plan::Strategy_Name(plan.strategy());
  return absl::StrCat(step::Plan::PipelineSchedule_Name(plan.schedule()), ", ",
                      step::Plan::Layout_Name(plan.layout()));
}

// Equal for two inputs exactly if they train the same models on the same batch: their steps compare
// strategies. A schedule file says too little, and is like itself only.
std::string JobOf(const Input& input) {
  if (input.is_schedule) return input.path;
  step::Experiment job = input.experiment;
  job.clear_name();
  job.clear_description();
  job.clear_assumptions();
  job.clear_plan();
  return job.SerializeAsString();
}

}  // namespace

absl::StatusOr<hw::HardwareProfile> ValidateOnRanks::FinalProfile() const {
  if (!measured_) return *inputs_.front().profile;
  return hw::MakeProfile("measured", *measured_, *inputs_.front().profile);
}

absl::StatusOr<ValidatedExperiment> ValidateOnRanks::Validate(std::size_t index,
                                                              const hw::ProfileCostModel& costs,
                                                              ir::Timeline& simulated,
                                                              ir::Timeline& measured) const {
  const ir::Schedule& schedule = jobs_[index].schedule;
  const executor::RunResult& result = results_[index];
  const double per_real_time = 1 / flags_.time_scale;
  const std::size_t median = executor::MedianStep(result.steps);
  measured = executor::MakeTimeline(schedule, result.times[median], executor::ToString(kind_));
  if (flags_.time_scale != 1) measured = Scaled(std::move(measured), per_real_time);
  // Emulated operations do not slow each other.
  SimulateOptions options;
  options.every_gpu = true;
  options.interference = measures() && !inputs_[index].experiment.hardware().no_interference();
  OPTIMUS_ASSIGN_OR_RETURN(simulated, SimulateSchedule(schedule, costs, options));
  ValidatedExperiment validated;
  validated.name = inputs_[index].name;
  validated.file = inputs_[index].path;
  validated.strategy = StrategyText(inputs_[index].experiment);
  std::vector<double> steps = InSeconds(result.steps);
  for (double& step : steps) step *= per_real_time;
  validated.steps = static_cast<int>(steps.size());
  validated.measured = SpreadOfSteps(steps);
  validated.measured.median = ToSeconds(measured.step);  // the same step, rounded once
  if (!measures()) {
    validated.emulation = EmulationOf(result.lateness[median], measured, flags_.time_scale);
  }
  OPTIMUS_ASSIGN_OR_RETURN(validated.comparison,
                           validation::Compare(simulated, measured, &schedule));
  return validated;
}

MachineNoise ValidateOnRanks::Noise() const {
  MachineNoise noise;
  if (!reference_) return noise;
  std::vector<double> samples = reference_->samples().kernels_ns.front();
  for (double& sample : samples) sample *= 1e-9;
  const GemmShape& gemm = reference_->plan().kernels.front().gemm;
  noise.kernel = absl::StrCat("a GEMM of ", gemm.m, " x ", gemm.n, " x ", gemm.k);
  noise.samples = static_cast<int>(samples.size());
  noise.time = SpreadOf(samples);
  std::size_t first = 0;
  for (const std::size_t end : visits_) {
    const std::vector<double> visit(samples.begin() + static_cast<std::ptrdiff_t>(first),
                                    samples.begin() + static_cast<std::ptrdiff_t>(end));
    noise.drift = std::max(noise.drift, std::abs(SpreadOf(visit).median / noise.time.median - 1));
    first = end;
  }
  return noise;
}

void ValidateOnRanks::Rank(Validation& validation) const {
  std::map<std::string, std::vector<validation::NamedSteps>> jobs;
  for (std::size_t i = 0; i < validation.experiments.size(); ++i) {
    const ValidatedExperiment& e = validation.experiments[i];
    jobs[JobOf(inputs_[i])].push_back(
        {e.name, ToSeconds(e.comparison.simulated_step), e.measured.median});
  }
  for (const auto& [job, steps] : jobs) {
    std::vector<validation::RankedPair> pairs =
        validation::CompareRanking(steps, flags_.least_difference);
    const std::size_t all = steps.size() * (steps.size() - 1) / 2;
    validation.close_pairs += static_cast<int>(all - pairs.size());
    std::move(pairs.begin(), pairs.end(), std::back_inserter(validation.ranking));
  }
}

absl::StatusOr<int> ValidateOnRanks::Finish() {
  OPTIMUS_ASSIGN_OR_RETURN(const hw::HardwareProfile profile, FinalProfile());
  const hw::ProfileCostModel costs(profile);
  Validation validation;
  validation.backend = executor::ToString(kind_);
  validation.device = device_;
  validation.hosts = ranks_.hosts();
  validation.simulator = SimulatorName();
  validation.profile = profile.name();
  validation.profile_hash = ProfileHash(profile);
  validation.rounds = flags_.rounds;
  validation.warm_up = flags_.warm_up;
  validation.tolerance = flags_.tolerance;
  validation.least_difference = flags_.least_difference;
  std::vector<std::pair<ir::Timeline, ir::Timeline>> timelines(jobs_.size());
  Progress progress;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    progress.Show(absl::StrCat("simulating ", inputs_[i].name));
    OPTIMUS_ASSIGN_OR_RETURN(ValidatedExperiment validated,
                             Validate(i, costs, timelines[i].first, timelines[i].second));
    validation.experiments.push_back(std::move(validated));
  }
  validation.noise = Noise();
  if (measured_) validation.few_samples = FewSamplesText(*measured_);
  Rank(validation);
  validation.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  OPTIMUS_RETURN_IF_ERROR(WriteFiles(validation, profile, timelines));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags_.json ? ValidationJson(validation)
                                                  : ValidationText(validation, flags_.all_work)));
  if (validation.within()) return kExitSuccess;
  SayCheckFailed(OutsideText(validation));
  return kExitCheckFailed;
}

absl::Status ValidateOnRanks::CheckFiles() const {
  if (flags_.out.empty()) return absl::OkStatus();
  std::vector<NamedFile> read;
  std::vector<NamedFile> written;
  for (const char* name : {kReportJson, kReportText, kProfile}) {
    written.push_back({"--out", absl::StrCat(flags_.out, "/", name)});
  }
  for (const Input& input : inputs_) {
    const std::vector<NamedFile> files = InputFiles(input.path, input.experiment);
    read.insert(read.end(), files.begin(), files.end());
    for (const char* ending : {kSchedule, kSimulated, kMeasured}) {
      written.push_back({"--out", absl::StrCat(flags_.out, "/", FileName(input.name), ending)});
    }
  }
  return CheckOverwrites(read, written);
}

absl::Status ValidateOnRanks::WriteFiles(
    const Validation& validation, const hw::HardwareProfile& profile,
    const std::vector<std::pair<ir::Timeline, ir::Timeline>>& timelines) const {
  if (flags_.out.empty()) return absl::OkStatus();
  StagedFiles files;
  OPTIMUS_RETURN_IF_ERROR(files.CreateFolders(flags_.out));
  const std::string folder = flags_.out + "/";
  OPTIMUS_RETURN_IF_ERROR(files.Add(folder + kReportJson, ValidationJson(validation)));
  OPTIMUS_RETURN_IF_ERROR(
      files.Add(folder + kReportText, ValidationText(validation, flags_.all_work)));
  OPTIMUS_ASSIGN_OR_RETURN(std::string text, EncodeProfile(profile));
  OPTIMUS_RETURN_IF_ERROR(files.Add(folder + kProfile, std::move(text)));
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const std::string prefix = folder + FileName(inputs_[i].name);
    const std::string schedule = prefix + kSchedule;
    const std::string simulated = prefix + kSimulated;
    const std::string measured = prefix + kMeasured;
    OPTIMUS_ASSIGN_OR_RETURN(std::string content, ir::EncodeSchedule(schedule, jobs_[i].schedule));
    OPTIMUS_RETURN_IF_ERROR(files.Add(schedule, std::move(content)));
    OPTIMUS_ASSIGN_OR_RETURN(content, ir::EncodeTimeline(simulated, timelines[i].first));
    OPTIMUS_RETURN_IF_ERROR(files.Add(simulated, std::move(content)));
    OPTIMUS_ASSIGN_OR_RETURN(content, ir::EncodeTimeline(measured, timelines[i].second));
    OPTIMUS_RETURN_IF_ERROR(files.Add(measured, std::move(content)));
  }
  return files.Commit();
}

}  // namespace optimus::tools
