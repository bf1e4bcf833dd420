#include "tools/replay_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "traces/replay/path.h"

namespace optimus::tools {
namespace {

ReplayColumn ColumnOf(const TracedStep& traced, traces::Run run) {
  ReplayColumn column;
  const auto ranks = AccountOf(traced.graph, traced.classes, run);
  column.times =
      traced.rank_index < 0 ? MeanOf(ranks) : ranks[static_cast<std::size_t>(traced.rank_index)];
  column.run = std::move(run);
  return column;
}

// What to keep in mind with a what-if.
std::vector<std::string> CautionsOf(const ReplayReport& report, const ParsedWhatIf& what_if,
                                    const traces::WhatIfDurations& durations) {
  std::vector<std::string> cautions;
  if (what_if.what_if.before != nullptr && report.traced.graph.timed) {
    cautions.push_back(
        absl::StrCat(durations.changed, " of ", durations.communications,
                     " communications change with the link; ranks of one node, by the profile: ",
                     what_if.before->gpus_per_node(), " each"));
  }
  Picoseconds unknown;
  for (const traces::PathPiece& piece : CriticalPath(report.traced.graph, report.replayed.run)) {
    if (piece.kind == traces::PieceKind::kGap) unknown += piece.length();
  }
  constexpr double kMuch = 0.1;
  const double step = ToSeconds(report.replayed.run.step);
  if (step > 0 && ToSeconds(unknown) > kMuch * step) {
    cautions.push_back(absl::StrFormat(
        "%.0f %% of the critical path is launch gaps and what the trace does not say; they are "
        "kept, so the true change may be larger",
        100 * ToSeconds(unknown) / step));
  }
  return cautions;
}

}  // namespace

absl::StatusOr<ReplayReport> MakeReplayReport(TracedStep traced, const ParsedWhatIf& what_if) {
  ReplayReport report;
  report.traced = std::move(traced);
  const traces::ReplayGraph& graph = report.traced.graph;
  if (graph.timed) report.recorded = ColumnOf(report.traced, RecordedRun(graph));
  OPTIMUS_ASSIGN_OR_RETURN(const traces::Durations base,
                           BaseDurations(graph, what_if.before.get()));
  report.replayed = ColumnOf(report.traced, Replay(graph, base));
  report.changes = what_if.texts;
  if (report.changes.empty()) return report;
  if (graph.recording.folded && !what_if.what_if.stragglers.empty()) {
    report.changes.emplace_back("a slow rank is slow with all GPUs that it stands for");
  }
  OPTIMUS_ASSIGN_OR_RETURN(traces::Durations changed, BaseDurations(graph, what_if.after.get()));
  OPTIMUS_ASSIGN_OR_RETURN(
      traces::WhatIfDurations durations,
      Apply(graph, report.traced.classes, what_if.what_if, std::move(changed)));
  report.cautions = CautionsOf(report, what_if, durations);
  report.kept = std::move(durations.kept);
  report.what_if = ColumnOf(report.traced, Replay(graph, durations.durations));
  return report;
}

}  // namespace optimus::tools
