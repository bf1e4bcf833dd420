#include "tools/validate_command.h"

#include <memory>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"
#include "schedule/ir/validate.h"
#include "tools/backend_flags.h"
#include "tools/exit_codes.h"
#include "tools/launched.h"
#include "tools/outputs.h"
#include "tools/planned_step.h"
#include "tools/ranks.h"
#include "tools/shared_flags.h"
#include "tools/validate_on_ranks.h"
#include "tools/validation_json.h"
#include "tools/validation_text.h"

namespace optimus::tools {
namespace {

using executor::BackendKind;

constexpr char kBackends[] = "cpu|emulated|cuda";

void AddTolerance(CLI::App& command, double& tolerance) {
  command
      .add_option("--tolerance", tolerance,
                  "Exit with 2 where the simulated step is off by more than this share")
      ->type_name("SHARE")
      ->capture_default_str();
}

void AddAllWork(CLI::App& command, bool& all_work) {
  command.add_flag(
      "--all-work", all_work,
      "Show every kind of work, not only those that take longest; JSON always has all");
}

absl::Status CheckRunFlags(const ValidateRunFlags& flags, BackendKind kind) {
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--rounds", flags.rounds, 1, 1000));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--iterations", flags.iterations, 1, 1e6));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--warmup", flags.warm_up, 0, 1e6));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--repetitions", flags.repetitions, 1, 1e5));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--tolerance", flags.tolerance, 0, 1e6));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--least-difference", flags.least_difference, 0, 1e6));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--time-scale", flags.time_scale, 1e-3, 1e6));
  OPTIMUS_RETURN_IF_ERROR(ParsePipeline(flags.pipeline).status());
  const bool cpu = kind == BackendKind::kCpu;
  OPTIMUS_RETURN_IF_ERROR(
      OnlyFor(flags.time_scale != 1, "--time-scale", kind == BackendKind::kEmulated, "emulated"));
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.repetitions != ValidateRunFlags().repetitions,
                                  "--repetitions", kind != BackendKind::kEmulated, "cpu or cuda"));
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.bf16, "--bf16", cpu, "cpu"));
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.no_pin, "--no-pin", cpu, "cpu"));
  if (flags.out.empty()) return absl::OkStatus();
  return CheckWritableDirectory("--out", flags.out);
}

// Every timeline says what made it.
bool IsMeasured(const ir::Timeline& timeline) {
  return executor::ParseBackend(timeline.runner).ok();
}

// Two simulations, or two runs, may be compared: the report names both runners.
absl::Status CheckOrder(const ValidateTimelinesFlags& flags, const ir::Timeline& simulated,
                        const ir::Timeline& measured) {
  if (!IsMeasured(simulated) || IsMeasured(measured) || measured.runner.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flags.simulated, ": was measured (", simulated.runner, "), and ", flags.measured,
                   " was simulated (", measured.runner, "): give the simulated timeline first"));
}

}  // namespace

CLI::App& ValidateGroup(CLI::App& app) {
  const auto is_it = [](const CLI::App* command) { return command->get_name() == "validate"; };
  for (CLI::App* group : app.get_subcommands(is_it)) return *group;
  CLI::App* group = app.add_subcommand("validate", "Compare the simulator with measurements.");
  group->require_subcommand(1);
  return *group;
}

CLI::App* AddValidateRunCommand(CLI::App& app, ValidateRunFlags& flags) {
  CLI::App* command = ValidateGroup(app).add_subcommand(
      "run",
      "Profile this hardware, run every EXPERIMENT on it, simulate the same schedules with the "
      "measured profile, and compare: step, kinds of work, bubbles by cause, and the order of "
      "those that train the same. Started alone it starts its ranks by mpirun. Exits with 2 where "
      "a step is outside the tolerance or an order differs, also where the report says that "
      "nothing follows, because the machine was too noisy or emulated ranks were late.");
  command->add_option("EXPERIMENT", flags.files, "Experiments (textproto), all of as many ranks")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  AddBackendFlag(*command, flags.backend, kBackends);
  command
      ->add_option("--rounds", flags.rounds,
                   "Profiling and running take turns so often, so that drift falls on both")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--iterations", flags.iterations,
                   "Measured steps of each experiment, in all rounds together")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--warmup", flags.warm_up, "Steps before them, in every round")
      ->type_name("K")
      ->capture_default_str();
  command
      ->add_option("--repetitions", flags.repetitions,
                   "Measurements of every kernel and transfer, in all rounds together")
      ->type_name("N")
      ->capture_default_str();
  AddTolerance(*command, flags.tolerance);
  command
      ->add_option("--least-difference", flags.least_difference,
                   "Experiments whose measured steps differ by more than this share must be in the "
                   "same order simulated")
      ->type_name("SHARE")
      ->capture_default_str();
  AddPipelineFlag(*command, flags.pipeline);
  AddTimeScaleFlag(*command, flags.time_scale);
  AddTimeoutFlag(*command, flags.timeout);
  AddBf16Flag(*command, flags.bf16);
  AddNoPinFlag(*command, flags.no_pin);
  AddAllWork(*command, flags.all_work);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  command
      ->add_option("--out", flags.out,
                   "Write report, profile, schedules, and both timelines of every experiment into "
                   "this folder")
      ->check(NotEmpty)
      ->type_name("DIR");
  return command;
}

CLI::App* AddValidateTimelinesCommand(CLI::App& app, ValidateTimelinesFlags& flags) {
  CLI::App* command = ValidateGroup(app).add_subcommand(
      "timelines",
      "Compare a simulated timeline (optimus simulate --fidelity=gpu --timeline=...) with a "
      "measured one (optimus run --timeline=...) of the same schedule. Exits with 2 where the step "
      "is outside the tolerance.");
  command->add_option("SIMULATED", flags.simulated, "A timeline")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  command->add_option("MEASURED", flags.measured, "The other timeline")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  command
      ->add_option("--schedule", flags.schedule,
                   "The schedule of both: then kinds of work are compared too")
      ->check(NotEmpty)
      ->type_name("FILE.schedule.pb");
  AddTolerance(*command, flags.tolerance);
  AddAllWork(*command, flags.all_work);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  return command;
}

absl::StatusOr<int> RunValidateRun(const ValidateRunFlags& flags, Arguments& arguments) {
  OPTIMUS_ASSIGN_OR_RETURN(const BackendKind kind, BackendOf(flags.backend, kBackends));
  OPTIMUS_ASSIGN_OR_RETURN(const absl::Duration timeout, TimeoutOf(flags.timeout));
  OPTIMUS_RETURN_IF_ERROR(CheckRunFlags(flags, kind));
  if (!IsLaunched()) {
    OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Input> inputs, LoadTogether(flags, kind));
    const int needed = inputs.front().world.gpus();
    if (needed > 1) return RelaunchOnRanks(needed, arguments);
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Ranks> ranks,
                           Ranks::Join(kind, timeout, arguments));
  ValidateOnRanks run(flags, kind, *ranks, arguments);
  return ranks->End(run.Run());
}

absl::StatusOr<int> RunValidateTimelines(const ValidateTimelinesFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--tolerance", flags.tolerance, 0, 1e6));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline simulated, ir::ReadTimeline(flags.simulated));
  OPTIMUS_ASSIGN_OR_RETURN(const ir::Timeline measured, ir::ReadTimeline(flags.measured));
  OPTIMUS_RETURN_IF_ERROR(CheckOrder(flags, simulated, measured));
  ir::Schedule schedule;
  if (!flags.schedule.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(schedule, ir::ReadSchedule(flags.schedule));
    OPTIMUS_RETURN_IF_ERROR(ir::Validate(schedule));
  }
  OPTIMUS_ASSIGN_OR_RETURN(
      const validation::Comparison comparison,
      validation::Compare(simulated, measured, flags.schedule.empty() ? nullptr : &schedule));
  OPTIMUS_RETURN_IF_ERROR(
      WriteStdout(flags.json ? ComparisonJson(comparison, flags.tolerance)
                             : ComparisonText(comparison, flags.tolerance, flags.all_work)));
  if (Within(comparison, flags.tolerance)) return kExitSuccess;
  SayCheckFailed(OutsideText(comparison, flags.tolerance));
  return kExitCheckFailed;
}

}  // namespace optimus::tools
