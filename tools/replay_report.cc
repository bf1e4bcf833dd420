#include "tools/replay_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/report.h"
#include "traces/replay/path.h"

namespace optimus::tools {
namespace {

ReplayColumn ColumnOf(const ReplayReport& report, std::int32_t rank_index, traces::Run run) {
  ReplayColumn column;
  const auto ranks = AccountOf(report.graph, report.classes, run);
  column.times = rank_index < 0 ? MeanOf(ranks) : ranks[static_cast<std::size_t>(rank_index)];
  column.run = std::move(run);
  return column;
}

// What to keep in mind with a what-if.
std::vector<std::string> CautionsOf(const ReplayReport& report, const ParsedWhatIf& what_if,
                                    const traces::WhatIfDurations& durations) {
  std::vector<std::string> cautions;
  if (what_if.what_if.before != nullptr && report.graph.timed) {
    cautions.push_back(
        absl::StrCat(durations.changed, " of ", durations.communications,
                     " communications change with the link; ranks of one node, by the profile: ",
                     what_if.before->gpus_per_node(), " each"));
  }
  Picoseconds unknown;
  for (const traces::PathPiece& piece : CriticalPath(report.graph, report.replayed.run)) {
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

absl::StatusOr<traces::Durations> BaseDurations(const traces::ReplayGraph& graph,
                                                const CostModel* costs) {
  if (graph.timed) return RecordedDurations(graph);
  if (costs != nullptr) return PriceUntimed(graph, *costs);
  return absl::InvalidArgumentError(
      "the trace has no times; hint: give a hardware profile to price its operations (--profile)");
}

absl::StatusOr<std::int32_t> RankIndex(const traces::Recording& recording, std::int32_t rank) {
  if (rank < 0) return -1;
  for (std::size_t i = 0; i < recording.ranks.size(); ++i) {
    if (recording.ranks[i].rank == rank) return static_cast<std::int32_t>(i);
  }
  std::string known;
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < recording.ranks.size() && i < kShown; ++i) {
    absl::StrAppend(&known, i == 0 ? "" : ", ", recording.ranks[i].rank);
  }
  if (recording.ranks.size() > kShown) absl::StrAppend(&known, ", ...");
  return absl::InvalidArgumentError(
      absl::StrCat("--rank=", rank, ": was not recorded; the trace has rank ", known));
}

absl::StatusOr<ReplayReport> MakeReplayReport(traces::ReplayGraph graph,
                                              const ParsedWhatIf& what_if, std::int32_t rank) {
  ReplayReport report;
  report.version = OPTIMUS_VERSION;
  report.rank = rank;
  report.graph = std::move(graph);
  report.classes = ClassesOf(report.graph);
  if (what_if.profile.has_value()) {
    report.profile = what_if.profile->name();
    report.profile_hash = ProfileHash(*what_if.profile);
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::int32_t index, RankIndex(report.graph.recording, rank));
  if (report.graph.timed) report.recorded = ColumnOf(report, index, RecordedRun(report.graph));
  OPTIMUS_ASSIGN_OR_RETURN(const traces::Durations base,
                           BaseDurations(report.graph, what_if.before.get()));
  report.replayed = ColumnOf(report, index, Replay(report.graph, base));
  report.changes = what_if.texts;
  if (report.graph.recording.folded && !what_if.what_if.stragglers.empty()) {
    report.changes.emplace_back("a slow rank is slow with all GPUs that it stands for");
  }
  if (report.changes.empty()) return report;
  OPTIMUS_ASSIGN_OR_RETURN(traces::Durations changed,
                           BaseDurations(report.graph, what_if.after.get()));
  OPTIMUS_ASSIGN_OR_RETURN(
      traces::WhatIfDurations durations,
      Apply(report.graph, report.classes, what_if.what_if, std::move(changed)));
  report.cautions = CautionsOf(report, what_if, durations);
  report.kept = std::move(durations.kept);
  report.what_if = ColumnOf(report, index, Replay(report.graph, durations.durations));
  return report;
}

}  // namespace optimus::tools
