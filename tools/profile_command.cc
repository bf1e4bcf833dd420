#include "tools/profile_command.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "hw_profiles/from_measurements.h"
#include "tools/backend_flags.h"
#include "tools/exit_codes.h"
#include "tools/input_files.h"
#include "tools/measuring.h"
#include "tools/outputs.h"
#include "tools/planned_step.h"
#include "tools/profile_text.h"
#include "tools/ranks.h"
#include "tools/run_on_ranks.h"
#include "tools/shared_flags.h"

namespace optimus::tools {
namespace {

using executor::BackendKind;
using Clock = std::chrono::steady_clock;

constexpr char kBackends[] = "cpu|cuda";
constexpr char kEnding[] = ".textproto";
constexpr char kNoBase[] = "h100-80gb";  // where neither --base nor an experiment names one

absl::Status CheckFlags(const ProfileFlags& flags, BackendKind kind) {
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--repetitions", flags.repetitions, 1, 1e5));
  const bool cpu = kind == BackendKind::kCpu;
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.bf16, "--bf16", cpu, "cpu"));
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.no_pin, "--no-pin", cpu, "cpu"));
  if (absl::EndsWith(flags.out, kEnding)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--out=", flags.out, ": a profile is only read again from a file whose name ",
                   "ends in ", kEnding, "; give it such a name"));
}

absl::Status CheckOut(const ProfileFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckWritableFile("--out", flags.out));
  std::vector<NamedFile> inputs;
  for (const std::string& file : flags.files) inputs.push_back({"--for", file});
  AddProfileFile("--base", flags.base, inputs);
  return CheckOverwrites(inputs, {{"--out", flags.out}});
}

// What every rank of `optimus profile` does.
class ProfileOnRanks {
 public:
  ProfileOnRanks(const ProfileFlags& flags, BackendKind kind, Ranks& ranks,
                 const Arguments& arguments)
      : flags_(flags), kind_(kind), ranks_(ranks), arguments_(arguments) {}

  absl::StatusOr<int> Run() {
    OPTIMUS_ASSIGN_OR_RETURN(const std::string bytes, ranks_.FromFirst([this] { return Plan(); }));
    OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Job> jobs, DecodeJobs(bytes));
    executor::BackendOptions options;
    options.bf16 = flags_.bf16;
    options.pin = !flags_.no_pin;
    absl::StatusOr<executor::Backend> backend =
        executor::MakeBackend(kind_, ranks_.world(), options);
    if (backend.ok()) backend_ = std::move(*backend);
    OPTIMUS_RETURN_IF_ERROR(ranks_.Agree(backend.status()));
    Measuring measuring(ranks_, backend_, kind_, PlanOf(jobs));
    OPTIMUS_RETURN_IF_ERROR(Measure(measuring));
    OPTIMUS_RETURN_IF_ERROR(ranks_.FromFirst([&] { return Report(measuring); }).status());
    return kExitSuccess;
  }

 private:
  // Rank 0: the schedules that the profile is for.
  absl::StatusOr<std::string> Plan() {
    OPTIMUS_RETURN_IF_ERROR(CheckOut(flags_));
    if (!flags_.base.empty()) OPTIMUS_RETURN_IF_ERROR(LoadBase(flags_.base, "--base"));
    const int started = ranks_.world().size();
    std::vector<PlannedStep> steps;
    for (const std::string& file : flags_.files) {
      OPTIMUS_ASSIGN_OR_RETURN(const Input input, LoadInput(file, ""));
      OPTIMUS_RETURN_IF_ERROR(
          CheckOverwrites(InputFiles(file, input.experiment), {{"--out", flags_.out}}));
      // One rank measures kernels of any schedule.
      if (started > 1) OPTIMUS_RETURN_IF_ERROR(CheckWorldSize(input, started, arguments_));
      OPTIMUS_ASSIGN_OR_RETURN(PlannedStep step, PlanStep(input, nullptr, {}));
      steps.push_back(std::move(step));
      if (base_from_.empty() && input.profile) {
        base_ = *input.profile;
        base_from_ = absl::StrCat("hardware.profile of ", file);
      }
    }
    if (base_from_.empty()) {
      OPTIMUS_RETURN_IF_ERROR(LoadBase(kNoBase, flags_.files.empty()
                                                    ? "no --base, no --for"
                                                    : "no --base, and no --for has a profile"));
    }
    return EncodeJobs(steps, /*numerics=*/false);
  }

  absl::Status LoadBase(const std::string& name, const std::string& from) {
    OPTIMUS_ASSIGN_OR_RETURN(base_, hw::LoadProfile(name));
    base_from_ = from;
    return absl::OkStatus();
  }

  executor::MeasurePlan PlanOf(const std::vector<Job>& jobs) const {
    executor::World& world = ranks_.world();
    return jobs.empty() ? RangeOfSizes(kind_, world, Thoroughness::kFull)
                        : PlanForJobs(jobs, world.size());
  }

  // In a few rounds, so that a disturbance of a moment does not fall on one kernel alone.
  absl::Status Measure(Measuring& measuring) const {
    constexpr int kRounds = 4;
    Progress progress;
    int done = 0;
    for (int round = 1; round <= kRounds; ++round) {
      const int until = flags_.repetitions * round / kRounds;
      if (until == done) continue;
      if (ranks_.first()) progress.Show(absl::StrCat("measuring, round ", round, "/", kRounds));
      OPTIMUS_RETURN_IF_ERROR(measuring.Round(until - done));
      done = until;
    }
    return absl::OkStatus();
  }

  // Rank 0.
  absl::StatusOr<std::string> Report(const Measuring& measuring) const {
    const std::string name = std::filesystem::path(flags_.out).stem().string();
    ProfileReport report;
    report.measured = measuring.Summary();
    report.base = base_;
    report.base_from = base_from_;
    OPTIMUS_ASSIGN_OR_RETURN(report.profile,
                             hw::MakeProfile(name, report.measured, base_, &report.not_measured));
    OPTIMUS_ASSIGN_OR_RETURN(const std::string content, EncodeProfile(report.profile));
    OPTIMUS_RETURN_IF_ERROR(WriteFileAtomically(flags_.out, content));
    report.wall_s = std::chrono::duration<double>(Clock::now() - begin_).count();
    OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags_.json ? ProfileJson(report) : ProfileText(report)));
    return "";
  }

  const ProfileFlags& flags_;
  const BackendKind kind_;
  Ranks& ranks_;
  const Arguments& arguments_;
  const Clock::time_point begin_ = Clock::now();
  // At rank 0.
  hw::HardwareProfile base_;
  std::string base_from_;  // why that one
  executor::Backend backend_;
};

}  // namespace

CLI::App* AddProfileCommand(CLI::App& app, ProfileFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "profile",
      "Measure this hardware: the kernels that experiments need, transfers, launch overhead, and "
      "how much kernels and collectives slow each other. Writes a hardware profile that simulate, "
      "plan and run take by --profile. Start it by mpirun with as many ranks as the experiments "
      "need; alone it measures kernels only.");
  AddBackendFlag(*command, flags.backend, kBackends);
  command
      ->add_option("--for", flags.files,
                   "Measure what this experiment or schedule needs, again for several; without it "
                   "a range of sizes")
      ->check(NotEmpty)
      ->type_name("FILE");
  command->add_option("--repetitions", flags.repetitions, "Measurements of everything")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--base", flags.base,
                   "Profile from which all is taken that cannot be measured (its origin is kept); "
                   "without it the hardware.profile of the first --for that has one, else "
                   "h100-80gb")
      ->check(NotEmpty)
      ->type_name("NAME");
  command->add_option("--out", flags.out, "The profile to write")
      ->required()
      ->check(NotEmpty)
      ->type_name("P.textproto");
  AddTimeoutFlag(*command, flags.timeout);
  AddBf16Flag(*command, flags.bf16);
  AddNoPinFlag(*command, flags.no_pin);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  return command;
}

absl::StatusOr<int> RunProfile(const ProfileFlags& flags, Arguments& arguments) {
  OPTIMUS_ASSIGN_OR_RETURN(const BackendKind kind, BackendOf(flags.backend, kBackends));
  OPTIMUS_ASSIGN_OR_RETURN(const absl::Duration timeout, TimeoutOf(flags.timeout));
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(flags, kind));
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Ranks> ranks,
                           Ranks::Join(kind, timeout, arguments));
  ProfileOnRanks run(flags, kind, *ranks, arguments);
  return ranks->End(run.Run());
}

}  // namespace optimus::tools
