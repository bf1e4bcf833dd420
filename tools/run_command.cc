#include "tools/run_command.h"

#include <memory>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/backend_flags.h"
#include "tools/exit_codes.h"
#include "tools/file_kinds.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/run_on_ranks.h"
#include "tools/shared_flags.h"

namespace optimus::tools {
namespace {

using executor::BackendKind;

constexpr char kBackends[] = "cpu|cuda|emulated";

absl::Status CheckBackendFlags(const RunFlags& flags, BackendKind kind) {
  const bool cpu = kind == BackendKind::kCpu;
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.numerics, "--numerics", cpu, "cpu"));
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.bf16, "--bf16", cpu, "cpu"));
  OPTIMUS_RETURN_IF_ERROR(
      OnlyFor(flags.cuda_graph, "--cuda-graph", kind == BackendKind::kCuda, "cuda"));
  OPTIMUS_RETURN_IF_ERROR(
      OnlyFor(flags.time_scale != 1, "--time-scale", kind == BackendKind::kEmulated, "emulated"));
  OPTIMUS_RETURN_IF_ERROR(OnlyFor(flags.no_pin, "--no-pin", cpu, "cpu"));
  if (flags.tolerance_given && !flags.numerics) {
    return absl::InvalidArgumentError("--tolerance is of --numerics; give both or leave it out");
  }
  if (flags.numerics && flags.bf16) {
    return absl::InvalidArgumentError("--numerics compares real data in f32; leave --bf16 out");
  }
  if (flags.numerics && IsScheduleFile(flags.file)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.file, ": is named as a schedule, which names no models to train; --numerics needs ",
        "an experiment"));
  }
  return absl::OkStatus();
}

absl::Status CheckFlags(const RunFlags& flags, BackendKind kind) {
  OPTIMUS_RETURN_IF_ERROR(CheckBackendFlags(flags, kind));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--iterations", flags.iterations, 1, 1e6));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--warmup", flags.warm_up, 0, 1e6));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--time-scale", flags.time_scale, 1e-3, 1e6));
  OPTIMUS_RETURN_IF_ERROR(CheckRange("--tolerance", flags.tolerance, 0, 1));
  OPTIMUS_RETURN_IF_ERROR(ParseScheduler(flags.scheduler).status());
  OPTIMUS_RETURN_IF_ERROR(ParsePipeline(flags.pipeline).status());
  if (!flags.schedule.empty()) OPTIMUS_RETURN_IF_ERROR(CheckScheduleName(flags.schedule));
  OPTIMUS_RETURN_IF_ERROR(CheckTraceName(flags.trace));
  return flags.timeline.empty() ? absl::OkStatus() : CheckTimelineName(flags.timeline);
}

void AddRunFlags(CLI::App& command, RunFlags& flags) {
  command.add_option("--iterations", flags.iterations, "Steps that are measured")
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--warmup", flags.warm_up, "Steps before them")
      ->type_name("K")
      ->capture_default_str();
  AddProfileFlag(command, flags.profile, "a schedule file needs it for --backend=emulated");
  AddPipelineFlag(command, flags.pipeline);
  AddSchedulerFlag(command, flags.scheduler);
  AddTimeoutFlag(command, flags.timeout);
  command.add_flag("--numerics", flags.numerics,
                   "cpu: train a real model (f32) by the schedule, and compare loss and every "
                   "gradient with a plain single-process program; exit with 2 where they differ");
  command.add_option("--tolerance", flags.tolerance, "Relative error that --numerics allows")
      ->each([&flags](const std::string& /*value*/) { flags.tolerance_given = true; })
      ->type_name("SHARE")
      ->capture_default_str();
  AddBf16Flag(command, flags.bf16);
  AddTimeScaleFlag(command, flags.time_scale);
  command.add_flag("--cuda-graph", flags.cuda_graph,
                   "cuda: capture a step once and launch it as one graph");
  AddNoPinFlag(command, flags.no_pin);
}

void AddFileFlags(CLI::App& command, RunFlags& flags) {
  command.add_flag("--json", flags.json, "Print the same figures as JSON");
  command
      .add_option("--timeline", flags.timeline,
                  "Write the measured timeline of the step of median length: when every operation "
                  "of every rank ran; the name ends in .timeline.pb or .timeline.textproto")
      ->check(NotEmpty)
      ->type_name("FILE.timeline.pb");
  command
      .add_option("--schedule", flags.schedule,
                  "Write the schedule that was run; the name ends in .schedule.pb or "
                  ".schedule.textproto")
      ->check(NotEmpty)
      ->type_name("FILE.schedule.pb");
  command
      .add_option("--trace", flags.trace,
                  "Write a Perfetto trace of that step (open it in ui.perfetto.dev)")
      ->check(NotEmpty)
      ->type_name("FILE.pftrace");
}

}  // namespace

CLI::App* AddRunCommand(CLI::App& app, RunFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Run the schedule of FILE on real hardware and print the table of `simulate` from "
      "measurement. Start it with one process a rank: mpirun -np N optimus run ..., srun, or "
      "torchrun (cuda); a schedule of one rank needs no launcher. Exits with 2 where --numerics "
      "finds "
      "more than --tolerance.");
  command
      ->add_option("FILE", flags.file,
                   "An experiment (textproto), or a schedule (*.schedule.pb, "
                   "*.schedule.textproto)")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  AddBackendFlag(*command, flags.backend, kBackends);
  AddRunFlags(*command, flags);
  AddFileFlags(*command, flags);
  return command;
}

absl::StatusOr<int> RunRun(const RunFlags& flags, Arguments& arguments) {
  OPTIMUS_ASSIGN_OR_RETURN(const BackendKind kind, BackendOf(flags.backend, kBackends));
  OPTIMUS_ASSIGN_OR_RETURN(const absl::Duration timeout, TimeoutOf(flags.timeout));
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(flags, kind));
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Ranks> ranks,
                           Ranks::Join(kind, timeout, arguments));
  RunOnRanks run(flags, kind, *ranks, arguments);
  return ranks->End(CatchOutOfMemory(
      flags.file, "running", [&run] { return run.Run(); },
      "fewer ranks of this machine, or smaller kernels and messages, need less"));
}

}  // namespace optimus::tools
