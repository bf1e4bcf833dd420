#include "tools/replay_command.h"

#include <optional>
#include <utility>
#include <vector>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/exit_codes.h"
#include "tools/explain_json.h"
#include "tools/explain_report.h"
#include "tools/explain_text.h"
#include "tools/outputs.h"
#include "tools/replay_json.h"
#include "tools/replay_report.h"
#include "tools/replay_text.h"
#include "tools/shared_flags.h"
#include "tools/trace_output.h"
#include "traces/replay/record_run.h"

namespace optimus::tools {
namespace {

// CLI11's form of a check: what is wrong, or nothing.
std::string NotNegative(const std::string& value) {
  std::int64_t number = 0;
  constexpr std::int64_t kMost = 1'000'000'000;
  if (absl::SimpleAtoi(value, &number) && number >= 0 && number <= kMost) return "";
  return absl::StrCat("'", value, "' is not a number from 0 to ", kMost);
}

void AddRankFlag(CLI::App& command, std::int32_t& rank, const char* meaning) {
  command.add_option("--rank", rank, meaning)->check(NotNegative)->type_name("R");
}

// What --trace asks for.
absl::StatusOr<TraceOutput> TraceOutputOf(const std::string& path) {
  absl::StatusOr<TraceOutput> output = OutputOf(path, "");
  if (!output.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trace=", path,
                     ": no name of a trace to write; it ends in .pftrace, .json, "
                     ".json.gz, .csv or .et, and not in .groups.json"));
  }
  output->origin = "--trace";
  return output;
}

// What was written: the what-if, or without changes the replay.
absl::Status WriteRun(const ReplayReport& report, const std::optional<TraceOutput>& output,
                      const std::vector<NamedFile>& read) {
  if (!output.has_value()) return absl::OkStatus();
  const traces::Recording recording =
      RecordRun(report.traced.graph, report.what_if ? report.what_if->run : report.replayed.run);
  OPTIMUS_RETURN_IF_ERROR(CheckOutput(recording, *output, read));
  return WriteTrace(recording, *output);
}

}  // namespace

CLI::App* AddReplayCommand(CLI::App& app, ReplayFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "replay",
      "Run a recorded step again: its time beside the recorded one, where the time goes, and what "
      "would be if a link, a GPU or the kernels were faster or slower. Recorded times hold where "
      "nothing changes.");
  AddTraceInputFiles(*command, flags.inputs);
  AddWhatIfFlags(*command, flags.what_if);
  AddRankFlag(*command, flags.rank, "Whose times are printed, instead of the mean over GPUs");
  AddTraceInputFlags(*command, flags.inputs);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  command
      ->add_option("--trace", flags.trace,
                   "Write the what-if (without changes the replay) as a trace; the name says the "
                   "format, as in optimus trace convert")
      ->check(NotEmpty)
      ->type_name("OUT");
  return command;
}

absl::StatusOr<int> RunReplay(const ReplayFlags& flags) {
  std::optional<TraceOutput> output;
  std::vector<NamedFile> read;
  if (!flags.trace.empty()) {
    OPTIMUS_ASSIGN_OR_RETURN(output, TraceOutputOf(flags.trace));
    OPTIMUS_ASSIGN_OR_RETURN(read, TraceInputFiles(flags.inputs));
    OPTIMUS_RETURN_IF_ERROR(CheckOutput({}, *output, read));
  }
  Progress progress;
  progress.Show(absl::StrCat("reading ", flags.inputs.paths.front()));
  OPTIMUS_ASSIGN_OR_RETURN(traces::Recording recording, LoadTrace(flags.inputs));
  OPTIMUS_ASSIGN_OR_RETURN(const ParsedWhatIf what_if, ParseWhatIf(flags.what_if, recording));
  progress.Show(absl::StrCat("replaying ", flags.inputs.paths.front()));
  OPTIMUS_ASSIGN_OR_RETURN(
      TracedStep traced,
      RebuildStep(flags.inputs.paths.front(), std::move(recording), what_if, flags.rank));
  OPTIMUS_ASSIGN_OR_RETURN(const ReplayReport report, MakeReplayReport(std::move(traced), what_if));
  OPTIMUS_RETURN_IF_ERROR(WriteRun(report, output, read));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? ReplayJson(report) : ReplayText(report)));
  if (output.has_value()) {
    progress.Say(absl::StrCat("wrote ", DescribeOutput(report.traced.graph.recording, *output)));
  }
  return kExitSuccess;
}

CLI::App* AddExplainCommand(CLI::App& app, ExplainFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "explain",
      "Say why a step takes as long as it does: the critical path through it, the longest gaps of "
      "the GPUs with their causes, and how much shorter it would be if one class of operation took "
      "no time. Of simulated, measured and recorded steps alike.");
  AddTraceInputFiles(*command, flags.inputs);
  AddRankFlag(*command, flags.rank, "Gaps of this rank alone");
  command->add_option("--top", flags.top, "How many gaps, and stretches of the critical path")
      ->check(NotNegative)
      ->type_name("N")
      ->capture_default_str();
  AddTraceProfileFlag(*command, flags.profile,
                      "A trace without times needs it: its operations "
                      "are priced by it");
  AddTraceInputFlags(*command, flags.inputs);
  command->add_flag("--json", flags.json, "Print the same figures as JSON");
  return command;
}

absl::StatusOr<int> RunExplain(const ExplainFlags& flags) {
  Progress progress;
  progress.Show(absl::StrCat("reading ", flags.inputs.paths.front()));
  OPTIMUS_ASSIGN_OR_RETURN(traces::Recording recording, LoadTrace(flags.inputs));
  WhatIfFlags prices;
  prices.profile = flags.profile;
  OPTIMUS_ASSIGN_OR_RETURN(const ParsedWhatIf parsed, ParseWhatIf(prices, recording));
  progress.Show(absl::StrCat("explaining ", flags.inputs.paths.front()));
  OPTIMUS_ASSIGN_OR_RETURN(
      TracedStep traced,
      RebuildStep(flags.inputs.paths.front(), std::move(recording), parsed, flags.rank));
  const auto top = static_cast<std::size_t>(flags.top);
  OPTIMUS_ASSIGN_OR_RETURN(const ExplainReport report,
                           MakeExplainReport(std::move(traced), parsed, top));
  progress.Clear();
  OPTIMUS_RETURN_IF_ERROR(WriteStdout(flags.json ? ExplainJson(report) : ExplainText(report, top)));
  return kExitSuccess;
}

}  // namespace optimus::tools
