#include "tools/validate_on_ranks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/runtime/runtime.h"
#include "tools/exit_codes.h"
#include "tools/file_kinds.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/run_on_ranks.h"
#include "tools/shared_flags.h"

namespace optimus::tools {
namespace {

constexpr int kQuickRepetitions = 3;      // of step 1 and 2
constexpr int kReferenceRepetitions = 5;  // of each visit

// The same on every machine: large enough for the clock, small enough to be done often.
executor::MeasurePlan ReferencePlan() {
  constexpr std::int64_t kSize = 512;
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.name = "reference";
  kernel.gemm = {kSize, kSize, kSize};
  kernel.flops = Flops(2.0 * kSize * kSize * kSize);
  kernel.bytes = Bytes(6 * kSize * kSize);
  executor::MeasurePlan plan;
  plan.kernels.push_back(std::move(kernel));
  return plan;
}

// Part `index` of `whole` in `parts` parts that differ by at most one.
int PartOf(int whole, int parts, int index) {
  return whole * (index + 1) / parts - whole * index / parts;
}

void Append(executor::RunResult from, executor::RunResult& to) {
  std::move(from.steps.begin(), from.steps.end(), std::back_inserter(to.steps));
  std::move(from.times.begin(), from.times.end(), std::back_inserter(to.times));
  to.lateness.insert(to.lateness.end(), from.lateness.begin(), from.lateness.end());
  to.ranks = std::move(from.ranks);
}

absl::Status CheckTogether(const Input& first, const Input& added, executor::BackendKind kind) {
  if (added.world.gpus() != first.world.gpus()) {
    return absl::InvalidArgumentError(
        absl::StrCat(added.path, ": needs ", added.world.gpus(), " ranks, ", first.path, " needs ",
                     first.world.gpus(), "; validate experiments of one size together"));
  }
  if (kind == executor::BackendKind::kEmulated &&
      added.profile->SerializeAsString() != first.profile->SerializeAsString()) {
    return absl::InvalidArgumentError(
        absl::StrCat(added.path, ": hardware.profile differs from that of ", first.path,
                     "; emulated ranks take their times from one profile"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Input>> LoadTogether(const ValidateRunFlags& flags,
                                                executor::BackendKind kind) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::optional<step::Plan::PipelineSchedule> pipeline,
                           ParsePipeline(flags.pipeline));
  std::set<std::string> names;
  std::vector<Input> inputs;
  for (const std::string& file : flags.files) {
    if (IsScheduleFile(file)) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": is named as a schedule; give experiments, which are planned with the profile ",
          "that is measured"));
    }
    OPTIMUS_ASSIGN_OR_RETURN(Input input, LoadInput(file, "", pipeline));
    if (!names.insert(FileName(input.name)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": a second experiment named ", input.name, "; rename one"));
    }
    inputs.push_back(std::move(input));
    OPTIMUS_RETURN_IF_ERROR(CheckTogether(inputs.front(), inputs.back(), kind));
  }
  return inputs;
}

absl::StatusOr<int> ValidateOnRanks::Run() {
  OPTIMUS_ASSIGN_OR_RETURN(std::string bytes, ranks_.FromFirst([this] { return Load(); }));
  OPTIMUS_ASSIGN_OR_RETURN(jobs_, DecodeJobs(bytes));
  OPTIMUS_RETURN_IF_ERROR(MakeBackend());
  if (measures()) OPTIMUS_RETURN_IF_ERROR(FixSchedules());
  results_.resize(jobs_.size());
  OPTIMUS_RETURN_IF_ERROR(RunRounds());
  CloseBackend();
  ranks_.watchdog().Follow("waits for the simulation", nullptr, nullptr);
  OPTIMUS_ASSIGN_OR_RETURN(const std::string code,
                           ranks_.FromFirst([this]() -> absl::StatusOr<std::string> {
                             OPTIMUS_ASSIGN_OR_RETURN(const int exit_code, Finish());
                             return std::string(1, static_cast<char>(exit_code));
                           }));
  return code.empty() ? kExitInternal : code.front();
}

// All that can be wrong with the input is said before anything is measured: the experiments are
// planned with their own profile first, and emulated ones that is the plan.
absl::StatusOr<std::string> ValidateOnRanks::Load() {
  OPTIMUS_ASSIGN_OR_RETURN(inputs_, LoadTogether(flags_, kind_));
  OPTIMUS_RETURN_IF_ERROR(CheckWorldSize(inputs_.front(), ranks_.world().size(), arguments_));
  OPTIMUS_RETURN_IF_ERROR(CheckFiles());
  return Plan(nullptr);
}

absl::StatusOr<std::string> ValidateOnRanks::Plan(const Measuring* measuring) {
  planned_.clear();
  std::optional<hw::HardwareProfile> profile;
  if (measuring != nullptr) {
    OPTIMUS_ASSIGN_OR_RETURN(profile, measuring->Profile("measured", *inputs_.front().profile));
  }
  Progress progress;
  for (const Input& input : inputs_) {
    progress.Show(absl::StrCat("planning ", input.name));
    OPTIMUS_ASSIGN_OR_RETURN(PlannedStep planned,
                             PlanStep(input, profile ? &*profile : nullptr,
                                      PlanBySimulator(input.experiment.hardware())));
    planned_.push_back(std::move(planned));
  }
  return EncodeJobs(planned_, /*numerics=*/false);
}

absl::Status ValidateOnRanks::MakeBackend() {
  executor::BackendOptions options;
  options.bf16 = flags_.bf16;
  options.pin = !flags_.no_pin;
  options.time_scale = flags_.time_scale;
  options.cuda_checked_steps = flags_.warm_up;
  if (!measures()) options.costs = jobs_.front().costs.get();
  absl::StatusOr<executor::Backend> backend = executor::MakeBackend(kind_, ranks_.world(), options);
  if (backend.ok()) backend_ = std::move(*backend);
  OPTIMUS_RETURN_IF_ERROR(ranks_.Agree(backend.status()));
  device_ = backend_.device->Description();
  return absl::OkStatus();
}

absl::Status ValidateOnRanks::FixSchedules() {
  executor::World& world = ranks_.world();
  Progress progress;
  if (ranks_.first()) progress.Show("measuring a range of sizes");
  executor::MeasurePlan generic = RangeOfSizes(kind_, world, Thoroughness::kQuick);
  executor::Merge(generic, PlanForJobs(jobs_, world.size()));
  measuring_ = std::make_unique<Measuring>(ranks_, backend_, kind_, std::move(generic));
  // The second time with the kernels of the schedules that the first profile gave.
  for (int pass = 0; pass < 2; ++pass) {
    OPTIMUS_RETURN_IF_ERROR(measuring_->Round(kQuickRepetitions));
    OPTIMUS_ASSIGN_OR_RETURN(const std::string bytes,
                             ranks_.FromFirst([this] { return Plan(measuring_.get()); }));
    OPTIMUS_ASSIGN_OR_RETURN(jobs_, DecodeJobs(bytes));
    if (ranks_.first()) progress.Show("measuring the kernels of the schedules");
    measuring_ =
        std::make_unique<Measuring>(ranks_, backend_, kind_, PlanForJobs(jobs_, world.size()));
  }
  reference_ = std::make_unique<Measuring>(ranks_, backend_, kind_, ReferencePlan());
  return absl::OkStatus();
}

absl::Status ValidateOnRanks::TimeReference() {
  if (!reference_) return absl::OkStatus();
  OPTIMUS_RETURN_IF_ERROR(reference_->Round(kReferenceRepetitions));
  visits_.push_back(reference_->samples().kernels_ns.front().size());
  return absl::OkStatus();
}

absl::Status ValidateOnRanks::RunRounds() {
  Progress progress;
  for (int round = 0; round < flags_.rounds; ++round) {
    if (ranks_.first()) {
      progress.Show(absl::StrCat("round ", round + 1, "/", flags_.rounds, ": measuring"));
    }
    const int repetitions = PartOf(flags_.repetitions, flags_.rounds, round);
    if (measuring_ && repetitions > 0) {
      OPTIMUS_RETURN_IF_ERROR(measuring_->Round(repetitions));
    }
    if (ranks_.first()) {
      progress.Show(absl::StrCat("round ", round + 1, "/", flags_.rounds, ": running"));
    }
    OPTIMUS_RETURN_IF_ERROR(RunRound(round));
  }
  return absl::OkStatus();
}

absl::Status ValidateOnRanks::RunRound(int round) {
  const int steps = PartOf(flags_.iterations, flags_.rounds, round);
  if (steps == 0) return absl::OkStatus();
  OPTIMUS_RETURN_IF_ERROR(TimeReference());
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const std::size_t index = (i + static_cast<std::size_t>(round)) % jobs_.size();
    OPTIMUS_RETURN_IF_ERROR(RunExperiment(index, round, steps));
    OPTIMUS_RETURN_IF_ERROR(TimeReference());
  }
  return absl::OkStatus();
}

// A runtime of its own every time: the device is prepared for one schedule at once. After an error
// it stays: taking it down could wait for ranks that are gone.
absl::Status ValidateOnRanks::RunExperiment(std::size_t index, int round, int steps) {
  absl::StatusOr<std::unique_ptr<executor::Runtime>> runtime =
      executor::Runtime::Create(jobs_[index].schedule, ranks_.world(), *backend_.device,
                                *backend_.ranks, /*workload=*/nullptr);
  if (runtime.ok()) runtime_ = std::move(*runtime);
  OPTIMUS_RETURN_IF_ERROR(ranks_.Agree(NameNotReady(flags_.files[index], runtime.status())));
  executor::RunOptions options;
  options.warm_up = flags_.warm_up;
  options.steps = steps;
  options.first_step = round * (flags_.warm_up + flags_.iterations);
  executor::Watchdog& watchdog = ranks_.watchdog();
  watchdog.Follow(
      absl::StrCat("runs ", jobs_[index].schedule.name),
      [this] { return runtime_->DescribeCurrent(); }, [this] { return runtime_->ended(); });
  OPTIMUS_ASSIGN_OR_RETURN(
      executor::RunResult result,
      executor::Run(*runtime_, ranks_.world(), options, [&watchdog] { return watchdog.Tick(); }));
  watchdog.Follow("between two runs", nullptr, nullptr);
  runtime_.reset();
  Append(std::move(result), results_[index]);
  return absl::OkStatus();
}

// The simulator forks: by then no thread of the backend is left.
void ValidateOnRanks::CloseBackend() {
  if (measuring_ && ranks_.first()) measured_ = measuring_->Summary();
  backend_.ranks.reset();
  backend_.device.reset();
}

}  // namespace optimus::tools
