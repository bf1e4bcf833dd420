#include "tools/result_files.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/staged_files.h"
#include "base/status_macros.h"
#include "schedule/ir/serialize.h"
#include "tools/input_files.h"
#include "tools/out_of_memory.h"
#include "tools/report_json.h"
#include "tools/report_text.h"
#include "traces/perfetto.h"

namespace optimus::tools {
namespace {

constexpr char kComparison[] = "comparison";
constexpr const char* kEndings[] = {".result.json", ".table.txt", ".pftrace", ".schedule.pb"};

std::string Prefix(const SimulateFlags& flags, const std::string& name) {
  return absl::StrCat(flags.out, "/", FileName(name));
}

absl::Status CheckNames(const std::vector<Simulation>& simulations) {
  std::set<std::string> names;
  for (const Simulation& simulation : simulations) {
    if (simulations.size() > 1 && FileName(simulation.name()) == kComparison) {
      return absl::InvalidArgumentError(absl::StrCat(
          simulation.path(), ": the experiment is named ", kComparison,
          ", as are the files in which --out compares all of them; rename the experiment"));
    }
    if (!names.insert(FileName(simulation.name())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--out: two experiments are named ", simulation.name(),
                       ", so one would overwrite the other's files; rename one"));
    }
  }
  return absl::OkStatus();
}

std::vector<NamedFile> Outputs(const SimulateFlags& flags,
                               const std::vector<Simulation>& simulations) {
  std::vector<NamedFile> files = NamedOutputs(flags);
  if (flags.out.empty()) return files;
  for (const Simulation& simulation : simulations) {
    for (const char* ending : kEndings) {
      files.push_back({"--out", absl::StrCat(Prefix(flags, simulation.name()), ending)});
    }
  }
  if (simulations.size() > 1) {
    files.push_back({"--out", absl::StrCat(Prefix(flags, kComparison), ".result.json")});
    files.push_back({"--out", absl::StrCat(Prefix(flags, kComparison), ".table.txt")});
  }
  return files;
}

std::vector<NamedFile> Inputs(const SimulateFlags& flags,
                              const std::vector<Simulation>& simulations) {
  std::vector<NamedFile> inputs;
  AddProfileFile("--profile", flags.profile, inputs);
  for (const Simulation& simulation : simulations) {
    const std::vector<NamedFile> read = InputFiles(simulation.path(), simulation.step().experiment);
    inputs.insert(inputs.end(), read.begin(), read.end());
  }
  return inputs;
}

absl::Status AddTrace(const std::string& path, const Simulation& simulation, StagedFiles& files) {
  OPTIMUS_ASSIGN_OR_RETURN(std::string trace,
                           traces::ToPerfetto(simulation.step().schedule, simulation.timeline()));
  return files.Add(path, std::move(trace));
}

absl::Status AddSchedule(const std::string& path, const Simulation& simulation,
                         StagedFiles& files) {
  OPTIMUS_ASSIGN_OR_RETURN(std::string content,
                           ir::EncodeSchedule(path, simulation.step().schedule));
  return files.Add(path, std::move(content));
}

absl::Status AddTimeline(const std::string& path, const Simulation& simulation,
                         StagedFiles& files) {
  OPTIMUS_ASSIGN_OR_RETURN(std::string content, ir::EncodeTimeline(path, simulation.timeline()));
  return files.Add(path, std::move(content));
}

// Everything about one experiment, in --out.
absl::Status AddExperiment(const std::string& prefix, const Simulation& simulation,
                           const Report& report, StagedFiles& files) {
  OPTIMUS_RETURN_IF_ERROR(files.Add(prefix + ".result.json", ToJson({report})));
  OPTIMUS_RETURN_IF_ERROR(files.Add(prefix + ".table.txt", FullText(report)));
  OPTIMUS_RETURN_IF_ERROR(AddTrace(prefix + ".pftrace", simulation, files));
  return AddSchedule(prefix + ".schedule.pb", simulation, files);
}

absl::Status AddOutDirectory(const SimulateFlags& flags, const std::vector<Simulation>& simulations,
                             const std::vector<Report>& reports, StagedFiles& files,
                             Progress& progress) {
  OPTIMUS_RETURN_IF_ERROR(files.CreateFolders(flags.out));
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    const std::string prefix = Prefix(flags, simulations[i].name());
    progress.Show(absl::StrCat("writing ", prefix));
    OPTIMUS_RETURN_IF_ERROR(CatchOutOfMemory(simulations[i].path(), "writing its files", [&] {
      return AddExperiment(prefix, simulations[i], reports[i], files);
    }));
  }
  if (reports.size() < 2) return absl::OkStatus();
  const std::string prefix = Prefix(flags, kComparison);
  OPTIMUS_RETURN_IF_ERROR(files.Add(prefix + ".result.json", ToJson(reports)));
  return files.Add(prefix + ".table.txt", ComparisonText(reports));
}

}  // namespace

std::vector<NamedFile> NamedOutputs(const SimulateFlags& flags) {
  std::vector<NamedFile> files;
  if (!flags.trace.empty()) files.push_back({"--trace", flags.trace});
  if (!flags.schedule.empty()) files.push_back({"--schedule", flags.schedule});
  if (!flags.timeline.empty()) files.push_back({"--timeline", flags.timeline});
  return files;
}

absl::Status CheckResultFiles(const SimulateFlags& flags,
                              const std::vector<Simulation>& simulations) {
  if (!flags.out.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CheckNames(simulations));
    OPTIMUS_RETURN_IF_ERROR(CheckWritableDirectory("--out", flags.out));
  }
  std::vector<NamedFile> outputs = Outputs(flags, simulations);
  for (const NamedFile& output : outputs) {
    // The folder of --out may not exist yet.
    OPTIMUS_RETURN_IF_ERROR(output.origin == "--out"
                                ? CheckReplaceable(output.origin, output.path)
                                : CheckWritableFile(output.origin, output.path));
  }
  if (!flags.out.empty()) outputs.push_back({"--out", flags.out});
  return CheckOverwrites(Inputs(flags, simulations), outputs);
}

absl::Status WriteResultFiles(const SimulateFlags& flags,
                              const std::vector<Simulation>& simulations,
                              const std::vector<Report>& reports, Progress& progress) {
  StagedFiles files;
  if (!flags.out.empty()) {
    OPTIMUS_RETURN_IF_ERROR(AddOutDirectory(flags, simulations, reports, files, progress));
  }
  // Flags that name one file come with one experiment.
  const Simulation& only = simulations.front();
  if (!flags.trace.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CatchOutOfMemory(flags.trace, "writing the trace",
                                             [&] { return AddTrace(flags.trace, only, files); }));
  }
  if (!flags.schedule.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CatchOutOfMemory(flags.schedule, "writing the schedule", [&] {
      return AddSchedule(flags.schedule, only, files);
    }));
  }
  if (!flags.timeline.empty()) {
    OPTIMUS_RETURN_IF_ERROR(CatchOutOfMemory(flags.timeline, "writing the timeline", [&] {
      return AddTimeline(flags.timeline, only, files);
    }));
  }
  return files.Commit();
}

std::string WrittenText(const SimulateFlags& flags) {
  std::vector<NamedFile> written = NamedOutputs(flags);
  if (!flags.out.empty()) {
    written.push_back({"--out", absl::StrCat("result, table, trace and schedule of each experiment "
                                             "in ",
                                             flags.out)});
  }
  return WroteText(written);
}

}  // namespace optimus::tools
