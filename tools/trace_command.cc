#include "tools/trace_command.h"

#include <utility>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/outputs.h"
#include "tools/shared_flags.h"
#include "tools/text_pieces.h"
#include "tools/trace_info.h"
#include "tools/trace_output.h"
#include "traces/perfetto_recording.h"

namespace optimus::tools {
namespace {

TraceInputs InputsOf(const TraceConvertFlags& flags) {
  TraceInputs inputs = flags.inputs;
  inputs.paths.assign(flags.files.begin(), flags.files.end() - 1);
  return inputs;
}

std::string WrittenText(const traces::Recording& recording, const TraceOutput& output) {
  std::int64_t operations = 0;
  for (const traces::RecordedRank& rank : recording.ranks) operations += std::ssize(rank.ops);
  std::string text = absl::StrCat("wrote ", DescribeOutput(recording, output), ": ",
                                  Count(std::ssize(recording.ranks), "rank", "ranks"), ", ",
                                  Count(operations, "operation", "operations"));
  const std::int64_t untimed = traces::CountUntimed(recording);
  if (output.kind == TraceFormat::kPerfetto && untimed > 0) {
    absl::StrAppend(&text, "; ", untimed, " without times are left out");
  }
  return text;
}

}  // namespace

CLI::App& TraceGroup(CLI::App& app) {
  const auto is_it = [](const CLI::App* command) { return command->get_name() == "trace"; };
  for (CLI::App* group : app.get_subcommands(is_it)) return *group;
  CLI::App* group = app.add_subcommand(
      "trace", "Traces of real and simulated runs: PyTorch's profiler, Chakra, our timelines.");
  group->require_subcommand(1);
  return *group;
}

CLI::App* AddTraceConvertCommand(CLI::App& app, TraceConvertFlags& flags) {
  CLI::App* command = TraceGroup(app).add_subcommand(
      "convert",
      "Read a trace and write it in another format: Perfetto (ui.perfetto.dev), Chrome JSON, "
      "Chakra execution traces (one file a rank, for ASTRA-sim), or a CSV of its operations.");
  command
      ->add_option("FILES", flags.files,
                   "Traces, as `optimus trace info` reads them, then the file to write. Its name "
                   "says the format: *.pftrace, *.json or *.json.gz, *.csv, or PREFIX.et, which "
                   "becomes PREFIX.RANK.et and PREFIX.groups.json")
      ->required()
      ->expected(2, -1)
      ->check(NotEmpty)
      ->type_name("");
  command
      ->add_option("--to", flags.to,
                   "Format, whatever the name; of chakra the name is then the prefix")
      ->check(NotEmpty)
      ->type_name(kTraceFormats);
  AddTraceInputFlags(*command, flags.inputs);
  command->add_flag("--all-ranks", flags.inputs.all_ranks,
                    "Of a timeline: write every rank of the world, not only those that stand for "
                    "all that do the same");
  return command;
}

CLI::App* AddTraceInfoCommand(CLI::App& app, TraceInfoFlags& flags) {
  CLI::App* command = TraceGroup(app).add_subcommand(
      "info",
      "Say what a trace holds: ranks, steps, streams, communication, groups, and what is missing.");
  AddTraceInputFiles(*command, flags.inputs);
  AddTraceInputFlags(*command, flags.inputs);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  return command;
}

absl::StatusOr<int> RunTraceConvert(const TraceConvertFlags& flags) {
  const TraceInputs inputs = InputsOf(flags);
  OPTIMUS_ASSIGN_OR_RETURN(const TraceOutput output, OutputOf(flags.files.back(), flags.to));
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<NamedFile> read, TraceInputFiles(inputs));
  // Before reading, as far as names are known; files of many ranks again below.
  OPTIMUS_RETURN_IF_ERROR(CheckOutput({}, output, read));
  Progress progress;
  progress.Show(absl::StrCat("reading ", inputs.paths.front()));
  OPTIMUS_ASSIGN_OR_RETURN(const traces::Recording recording, LoadTrace(inputs));
  OPTIMUS_RETURN_IF_ERROR(CheckOutput(recording, output, read));
  progress.Show(absl::StrCat("writing ", flags.files.back()));
  OPTIMUS_RETURN_IF_ERROR(WriteTrace(recording, output));
  progress.Clear();
  progress.Say(WrittenText(recording, output));
  return kExitSuccess;
}

absl::StatusOr<int> RunTraceInfo(const TraceInfoFlags& flags) {
  Progress progress;
  progress.Show(absl::StrCat("reading ", flags.inputs.paths.front()));
  OPTIMUS_ASSIGN_OR_RETURN(const traces::Recording recording, LoadTrace(flags.inputs));
  const TraceInfo info = InfoOf(recording);
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? TraceInfoJson(info) : TraceInfoText(info)));
  return kExitSuccess;
}

}  // namespace optimus::tools
