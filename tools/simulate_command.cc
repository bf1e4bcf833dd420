#include "tools/simulate_command.h"

#include <algorithm>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/simgrid_runner.h"
#include "tools/exit_codes.h"
#include "tools/file_kinds.h"
#include "tools/out_of_memory.h"
#include "tools/outputs.h"
#include "tools/report_json.h"
#include "tools/report_text.h"
#include "tools/result_files.h"
#include "tools/shared_flags.h"
#include "tools/simulation.h"

namespace optimus::tools {
namespace {

constexpr char kFidelities[] = "auto|folded|group|gpu";

absl::Status NamesOneFile(const std::string& flag, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " names one file, but there are several experiments; use --out=DIR, which writes ",
      what, " of each"));
}

// Flags that name one file.
absl::Status CheckFileFlags(const SimulateFlags& flags) {
  const bool several = flags.files.size() > 1;
  if (several && !flags.trace.empty()) return NamesOneFile("--trace", "a trace");
  if (several && !flags.schedule.empty()) return NamesOneFile("--schedule", "the schedule");
  if (several && !flags.timeline.empty()) {
    return absl::InvalidArgumentError(
        "--timeline names one file, but there are several experiments; simulate one at a time");
  }
  if (!flags.schedule.empty()) OPTIMUS_RETURN_IF_ERROR(CheckScheduleName(flags.schedule));
  if (!flags.timeline.empty()) OPTIMUS_RETURN_IF_ERROR(CheckTimelineName(flags.timeline));
  OPTIMUS_RETURN_IF_ERROR(CheckTraceName(flags.trace));
  for (const NamedFile& file : NamedOutputs(flags)) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile(file.origin, file.path));
  }
  return absl::OkStatus();
}

absl::Status CheckFlags(const SimulateFlags& flags) {
  if (!sim::ParseFidelity(flags.fidelity).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fidelity=", flags.fidelity, ": is none of ", kFidelities));
  }
  OPTIMUS_RETURN_IF_ERROR(ParseScheduler(flags.scheduler).status());
  OPTIMUS_RETURN_IF_ERROR(ParsePipeline(flags.pipeline).status());
  // What needs no experiment is said before the first is read.
  OPTIMUS_RETURN_IF_ERROR(CheckFileFlags(flags));
  if (!flags.out.empty()) OPTIMUS_RETURN_IF_ERROR(CheckWritableDirectory("--out", flags.out));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Simulation>> PrepareAll(const SimulateFlags& flags, Progress& progress) {
  SimulationOptions options;
  OPTIMUS_ASSIGN_OR_RETURN(options.fidelity, sim::ParseFidelity(flags.fidelity));
  OPTIMUS_ASSIGN_OR_RETURN(options.scheduler, ParseScheduler(flags.scheduler));
  OPTIMUS_ASSIGN_OR_RETURN(options.pipeline, ParsePipeline(flags.pipeline));
  options.no_interference = flags.no_interference;
  options.profile = flags.profile;
  options.require_fit = flags.require_fit;
  options.record_spans = !flags.trace.empty() || !flags.timeline.empty() || !flags.out.empty();
  std::vector<Simulation> simulations;
  for (const std::string& file : flags.files) {
    progress.Show(absl::StrCat("building ", file));
    OPTIMUS_ASSIGN_OR_RETURN(Simulation simulation,
                             CatchOutOfMemory(file, "building the step",
                                              [&] { return Simulation::Prepare(file, options); }));
    simulations.push_back(std::move(simulation));
  }
  if (options.scheduler && std::none_of(simulations.begin(), simulations.end(),
                                        [](const Simulation& s) { return s.is_optimus(); })) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--scheduler=", flags.scheduler, ": no experiment has plan.strategy: OPTIMUS, ",
        "and others place no encoders in bubbles; leave the flag out"));
  }
  OPTIMUS_RETURN_IF_ERROR(CheckResultFiles(flags, simulations));
  return simulations;
}

absl::StatusOr<std::vector<Report>> RunAll(std::vector<Simulation>& simulations,
                                           Progress& progress) {
  std::vector<Report> reports;
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    Simulation& simulation = simulations[i];
    progress.Show(
        absl::StrCat("simulating ", i + 1, "/", simulations.size(), " ", simulation.name()));
    OPTIMUS_RETURN_IF_ERROR(
        CatchOutOfMemory(simulation.path(), "simulating", [&] { return simulation.Run(); }));
    OPTIMUS_ASSIGN_OR_RETURN(Report report, simulation.MakeReport());
    reports.push_back(std::move(report));
  }
  return reports;
}

bool AllFit(const std::vector<Report>& reports) {
  return std::all_of(reports.begin(), reports.end(),
                     [](const Report& r) { return !r.memory || r.memory->fits(); });
}

}  // namespace

CLI::App* AddSimulateCommand(CLI::App& app, SimulateFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "simulate",
      "Simulate one training step of each FILE: step time, MFU, where every GPU's time goes, "
      "memory. Several files are compared with the first.");
  command
      ->add_option(
          "FILE", flags.files,
          "An experiment (textproto), or a schedule (*.schedule.pb, *.schedule.textproto), which "
          "needs --profile")
      ->required()
      ->check(NotEmpty)
      ->type_name("");
  command
      ->add_option("--fidelity", flags.fidelity,
                   "How much is simulated: folded (one data-parallel replica), group (one entity a "
                   "tensor-parallel group), gpu (every GPU), auto (the cheapest that is exact)")
      ->type_name(kFidelities)
      ->capture_default_str();
  AddProfileFlag(*command, flags.profile);
  AddPipelineFlag(*command, flags.pipeline);
  AddSchedulerFlag(*command, flags.scheduler);
  AddNoInterferenceFlag(*command, flags.no_interference);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  command
      ->add_option("--trace", flags.trace,
                   "Write a Perfetto trace of one replica (open it in ui.perfetto.dev)")
      ->check(NotEmpty)
      ->type_name("FILE.pftrace");
  command
      ->add_option("--schedule", flags.schedule,
                   "Write the schedule that was run; the name ends in .schedule.pb (binary) or "
                   ".schedule.textproto (text)")
      ->check(NotEmpty)
      ->type_name("FILE.schedule.pb");
  command
      ->add_option(
          "--timeline", flags.timeline,
          "Write the timeline: step, where every GPU's time goes, and when every operation "
          "of one replica ran; the name ends in .timeline.pb (binary) or "
          ".timeline.textproto (text)")
      ->check(NotEmpty)
      ->type_name("FILE.timeline.pb");
  command
      ->add_option(
          "--out", flags.out,
          "Write result, table, trace and schedule of every experiment into this folder: all of "
          "them, or after an error none")
      ->check(NotEmpty)
      ->type_name("DIR");
  command->add_flag("--require-fit", flags.require_fit,
                    "Exit with 2 if a plan needs more memory than a GPU has");
  return command;
}

absl::StatusOr<int> RunSimulate(const SimulateFlags& flags) {
  OPTIMUS_RETURN_IF_ERROR(CheckFlags(flags));
  Progress progress;
  // Bad input of any file is found before the first simulation: nothing is left half done.
  OPTIMUS_ASSIGN_OR_RETURN(std::vector<Simulation> simulations, PrepareAll(flags, progress));
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<Report> reports, RunAll(simulations, progress));
  OPTIMUS_RETURN_IF_ERROR(WriteResultFiles(flags, simulations, reports, progress));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json           ? ToJson(reports)
                                      : reports.size() > 1 ? ComparisonText(reports)
                                                           : FullText(reports.front())));
  progress.Say(WrittenText(flags));
  return flags.require_fit && !AllFit(reports) ? kExitCheckFailed : kExitSuccess;
}

}  // namespace optimus::tools
