#include "traces/replay/gaps.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace optimus::traces {
namespace {

bool IsBusy(const ReplayGraph& graph, TaskId task) {
  const OpKind kind = graph.op(task).kind;
  return kind == OpKind::kCompute || kind == OpKind::kCopy;
}

// Adds the gaps of one rank, without their paths.
void AddGapsOf(const ReplayGraph& graph, const Run& run, std::size_t rank,
               std::vector<IdleGap>& gaps) {
  std::vector<TaskId> busy;
  for (TaskId task = graph.first_task[rank]; task < graph.first_task[rank + 1]; ++task) {
    if (IsBusy(graph, task)) busy.push_back(task);
  }
  std::sort(busy.begin(), busy.end(), [&](TaskId a, TaskId b) {
    return std::make_pair(run.tasks[a].start, a) < std::make_pair(run.tasks[b].start, b);
  });
  IdleGap gap;
  gap.rank = static_cast<std::int32_t>(rank);
  const auto close = [&](Picoseconds to, TaskId next) {
    gap.to = to;
    gap.next = next;
    if (gap.from < gap.to) gaps.push_back(gap);
  };
  for (const TaskId task : busy) {
    close(run.tasks[task].start, task);
    if (run.tasks[task].end < gap.from) continue;
    gap.from = run.tasks[task].end;
    gap.before = task;
  }
  close(run.step, kNoTask);
}

// The part of a path from `from` on.
std::vector<PathPiece> From(const std::vector<PathPiece>& path, Picoseconds from) {
  std::vector<PathPiece> part;
  for (PathPiece piece : path) {
    if (piece.to <= from) continue;
    piece.from = std::max(piece.from, from);
    part.push_back(piece);
  }
  return part;
}

}  // namespace

std::vector<IdleGap> LongestGaps(const ReplayGraph& graph, const Run& run, std::size_t count,
                                 std::int32_t rank) {
  std::vector<IdleGap> gaps;
  for (std::size_t r = 0; r < graph.recording.ranks.size(); ++r) {
    if (rank < 0 || static_cast<std::size_t>(rank) == r) AddGapsOf(graph, run, r, gaps);
  }
  std::stable_sort(gaps.begin(), gaps.end(),
                   [](const IdleGap& a, const IdleGap& b) { return a.length() > b.length(); });
  if (gaps.size() > count) gaps.resize(count);
  std::vector<PathPiece> critical;
  for (IdleGap& gap : gaps) {
    if (gap.next != kNoTask) {
      gap.path = PathToStart(graph, run, gap.next, gap.from);
      continue;
    }
    if (critical.empty()) critical = CriticalPath(graph, run);
    gap.path = From(critical, gap.from);
  }
  return gaps;
}

std::vector<Share> SharesOf(const ReplayGraph& graph, const OpClasses& classes,
                            const std::vector<PathPiece>& pieces) {
  std::map<std::tuple<std::int32_t, std::int32_t, PieceKind>, Share> shares;
  std::map<std::tuple<std::int32_t, std::int32_t, PieceKind>, Picoseconds> longest;
  for (const PathPiece& piece : pieces) {
    const std::int32_t cls = piece.kind == PieceKind::kWork ? classes.of_task[piece.task] : -1;
    const auto key = std::make_tuple(graph.rank_of(piece.task), cls, piece.kind);
    Share& share = shares[key];
    std::tie(share.rank, share.cls, share.kind) = key;
    share.time += piece.length();
    if (piece.length() <= longest[key]) continue;
    longest[key] = piece.length();
    share.longest = piece.task;
  }
  std::vector<Share> sorted;
  sorted.reserve(shares.size());
  for (const auto& [key, share] : shares) sorted.push_back(share);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Share& a, const Share& b) { return a.time > b.time; });
  return sorted;
}

}  // namespace optimus::traces
