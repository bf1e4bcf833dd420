#include "tools/simulate_command.h"

#include <algorithm>
#include <set>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"
#include "sim/simgrid_runner.h"
#include "tools/exit_codes.h"
#include "tools/outputs.h"
#include "tools/report_json.h"
#include "tools/report_text.h"
#include "tools/simulation.h"
#include "traces/perfetto.h"

namespace optimus::tools {
namespace {

absl::Status CheckFlags(const SimulateFlags& flags) {
  if (flags.files.size() > 1 && !flags.trace.empty()) {
    return absl::InvalidArgumentError(
        "--trace names one file, but there are several experiments; use --out=DIR, which writes a "
        "trace of each");
  }
  if (flags.files.size() > 1 && !flags.schedule.empty()) {
    return absl::InvalidArgumentError(
        "--schedule names one file, but there are several experiments; use --out=DIR, which writes "
        "the schedule of each");
  }
  if (!flags.profile.empty() &&
      std::none_of(flags.files.begin(), flags.files.end(), IsScheduleFile)) {
    return absl::InvalidArgumentError(
        "--profile is for schedule files (*.schedule.pb); an experiment names its profile in "
        "hardware.profile");
  }
  if (!flags.trace.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile("--trace", flags.trace));
  }
  if (!flags.schedule.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CheckWritableFile("--schedule", flags.schedule));
  }
  if (!flags.out.empty()) OPTIMUS_RETURN_IF_ERROR(CheckWritableDirectory("--out", flags.out));
  return absl::OkStatus();
}

absl::Status CheckNames(const std::vector<Simulation>& simulations) {
  std::set<std::string> names;
  for (const Simulation& simulation : simulations) {
    if (!names.insert(FileName(simulation.name())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--out: two experiments are named ", simulation.name(),
                       ", so one would overwrite the other's files; rename one"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Simulation>> PrepareAll(const SimulateFlags& flags, Progress& progress) {
  SimulationOptions options;
  OPTIMUS_ASSIGN_OR_RETURN(options.fidelity, sim::ParseFidelity(flags.fidelity));
  options.profile = flags.profile;
  options.require_fit = flags.require_fit;
  options.record_spans = !flags.trace.empty() || !flags.out.empty();
  std::vector<Simulation> simulations;
  for (const std::string& file : flags.files) {
    progress.Show(absl::StrCat("building ", file));
    OPTIMUS_ASSIGN_OR_RETURN(Simulation simulation, Simulation::Prepare(file, options));
    simulations.push_back(std::move(simulation));
  }
  if (!flags.out.empty()) OPTIMUS_RETURN_IF_ERROR(CheckNames(simulations));
  return simulations;
}

absl::StatusOr<std::vector<Report>> RunAll(std::vector<Simulation>& simulations,
                                           Progress& progress) {
  std::vector<Report> reports;
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    progress.Show(
        absl::StrCat("simulating ", i + 1, "/", simulations.size(), " ", simulations[i].name()));
    OPTIMUS_RETURN_IF_ERROR(simulations[i].Run());
    OPTIMUS_ASSIGN_OR_RETURN(Report report, simulations[i].MakeReport());
    reports.push_back(std::move(report));
  }
  return reports;
}

absl::StatusOr<std::string> Trace(const Simulation& simulation) {
  return traces::ToPerfetto(simulation.step().schedule, simulation.timeline());
}

// The files of --out: everything about every experiment.
absl::Status WriteOutDirectory(const SimulateFlags& flags,
                               const std::vector<Simulation>& simulations,
                               const std::vector<Report>& reports, Progress& progress) {
  std::vector<OutputFile> files;
  std::vector<std::string> prefixes;
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    prefixes.push_back(absl::StrCat(flags.out, "/", FileName(simulations[i].name())));
    progress.Show(absl::StrCat("writing ", prefixes.back()));
    files.push_back({prefixes.back() + ".result.json", ToJson({reports[i]})});
    files.push_back({prefixes.back() + ".table.txt", FullText(reports[i])});
    OPTIMUS_ASSIGN_OR_RETURN(std::string trace, Trace(simulations[i]));
    files.push_back({prefixes.back() + ".pftrace", std::move(trace)});
  }
  if (reports.size() > 1) {
    files.push_back({flags.out + "/comparison.result.json", ToJson(reports)});
    files.push_back({flags.out + "/comparison.table.txt", ComparisonText(reports)});
  }
  OPTIMUS_RETURN_IF_ERROR(WriteFiles(flags.out, files));
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(
        ir::WriteSchedule(prefixes[i] + ".schedule.pb", simulations[i].step().schedule));
  }
  return absl::OkStatus();
}

absl::Status WriteNamedFiles(const SimulateFlags& flags, const Simulation& simulation) {
  if (!flags.trace.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(std::string trace, Trace(simulation));
    OPTIMUS_RETURN_IF_ERROR(WriteFiles("", {{flags.trace, std::move(trace)}}));
  }
  if (!flags.schedule.empty()) {
    OPTIMUS_RETURN_IF_ERROR(ir::WriteSchedule(flags.schedule, simulation.step().schedule));
  }
  return absl::OkStatus();
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
      ->add_option("FILE", flags.files,
                   "An experiment (textproto), or a schedule (*.schedule.pb) with --profile")
      ->required()
      ->type_name("");
  command
      ->add_option("--fidelity", flags.fidelity,
                   "How much is simulated: folded (one data-parallel replica), group (one entity a "
                   "tensor-parallel group), gpu (every GPU), auto (the cheapest that is exact)")
      ->type_name("auto|folded|group|gpu")
      ->capture_default_str();
  command
      ->add_option("--profile", flags.profile,
                   "Hardware profile for schedule files: a name or a textproto")
      ->type_name("NAME");
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  command
      ->add_option("--trace", flags.trace,
                   "Write a Perfetto trace of one replica (open it in ui.perfetto.dev)")
      ->type_name("FILE.pftrace");
  command
      ->add_option("--schedule", flags.schedule,
                   "Write the schedule that was run (binary; textproto if so named)")
      ->type_name("FILE.schedule.pb");
  command
      ->add_option("--out", flags.out,
                   "Write result, table, trace and schedule of every experiment into this folder")
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
  if (!flags.out.empty()) {
    OPTIMUS_RETURN_IF_ERROR(WriteOutDirectory(flags, simulations, reports, progress));
  }
  OPTIMUS_RETURN_IF_ERROR(WriteNamedFiles(flags, simulations.front()));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json           ? ToJson(reports)
                                      : reports.size() > 1 ? ComparisonText(reports)
                                                           : FullText(reports.front())));
  return flags.require_fit && !AllFit(reports) ? kExitCheckFailed : kExitSuccess;
}

}  // namespace optimus::tools
