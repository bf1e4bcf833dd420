#include "tools/explain_report.h"

#include <utility>

#include "base/status_macros.h"
#include "tools/replay_report.h"
#include "tools/report.h"

namespace optimus::tools {
namespace {

Stretch StretchOf(const traces::ReplayGraph& graph, const traces::OpClasses& classes,
                  const std::vector<traces::PathPiece>& pieces) {
  Stretch stretch;
  stretch.rank = graph.rank_of(pieces.front().task);
  stretch.reason = pieces.front().reason;
  stretch.from = pieces.front().from;
  stretch.to = pieces.back().to;
  stretch.first = pieces.front().task;
  for (const traces::PathPiece& piece : pieces) {
    stretch.operations += stretch.last == piece.task ? 0 : 1;
    stretch.last = piece.task;
  }
  stretch.shares = SharesOf(graph, classes, pieces);
  return stretch;
}

std::vector<Stretch> StretchesOf(const traces::ReplayGraph& graph, const traces::OpClasses& classes,
                                 const std::vector<traces::PathPiece>& path) {
  std::vector<Stretch> stretches;
  std::vector<traces::PathPiece> pieces;
  for (const traces::PathPiece& piece : path) {
    if (!pieces.empty() && graph.rank_of(pieces.front().task) != graph.rank_of(piece.task)) {
      stretches.push_back(StretchOf(graph, classes, pieces));
      pieces.clear();
    }
    pieces.push_back(piece);
  }
  if (!pieces.empty()) stretches.push_back(StretchOf(graph, classes, pieces));
  return stretches;
}

}  // namespace

absl::StatusOr<ExplainReport> MakeExplainReport(traces::ReplayGraph graph,
                                                const ParsedWhatIf& prices, std::int32_t rank,
                                                std::size_t top) {
  ExplainReport report;
  report.version = OPTIMUS_VERSION;
  report.rank = rank;
  report.graph = std::move(graph);
  report.classes = ClassesOf(report.graph);
  if (prices.profile.has_value()) {
    report.profile = prices.profile->name();
    report.profile_hash = ProfileHash(*prices.profile);
  }
  OPTIMUS_ASSIGN_OR_RETURN(const std::int32_t index, RankIndex(report.graph.recording, rank));
  OPTIMUS_ASSIGN_OR_RETURN(const traces::Durations durations,
                           BaseDurations(report.graph, prices.before.get()));
  report.run = Replay(report.graph, durations);
  const std::vector<traces::PathPiece> path = CriticalPath(report.graph, report.run);
  report.path = StretchesOf(report.graph, report.classes, path);
  report.path_shares = SharesOf(report.graph, report.classes, path);
  report.gaps = LongestGaps(report.graph, report.run, top, index);
  report.gap_shares.reserve(report.gaps.size());
  for (const traces::IdleGap& gap : report.gaps) {
    report.gap_shares.push_back(SharesOf(report.graph, report.classes, gap.path));
  }
  report.sensitivities = Sensitivities(report.graph, report.classes, durations);
  return report;
}

}  // namespace optimus::tools
