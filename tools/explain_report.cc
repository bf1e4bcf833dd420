#include "tools/explain_report.h"

#include <utility>

#include "base/status_macros.h"

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

absl::StatusOr<ExplainReport> MakeExplainReport(TracedStep traced, const ParsedWhatIf& prices,
                                                std::size_t top) {
  ExplainReport report;
  report.traced = std::move(traced);
  const traces::ReplayGraph& graph = report.traced.graph;
  const traces::OpClasses& classes = report.traced.classes;
  OPTIMUS_ASSIGN_OR_RETURN(const traces::Durations durations,
                           BaseDurations(graph, prices.before.get()));
  report.run = Replay(graph, durations);
  const std::vector<traces::PathPiece> path = CriticalPath(graph, report.run);
  report.path = StretchesOf(graph, classes, path);
  report.path_shares = SharesOf(graph, classes, path);
  report.gaps = LongestGaps(graph, report.run, top, report.traced.rank_index);
  report.gap_shares.reserve(report.gaps.size());
  for (const traces::IdleGap& gap : report.gaps) {
    report.gap_shares.push_back(SharesOf(graph, classes, gap.path));
  }
  report.sensitivities = Sensitivities(graph, classes, durations);
  return report;
}

}  // namespace optimus::tools
