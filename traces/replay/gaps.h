#pragma once
// The idle times of a GPU's kernels, each with its cause.

#include <string>
#include <vector>

#include "traces/replay/classes.h"
#include "traces/replay/graph.h"
#include "traces/replay/path.h"
#include "traces/replay/replay.h"

namespace optimus::traces {

// A time in which no kernel and no copy ran on a rank.
struct IdleGap {
  std::int32_t rank = 0;  // index
  Picoseconds from, to;
  TaskId before = kNoTask;  // the kernel that ran last; kNoTask: none in the step
  TaskId next = kNoTask;    // the kernel that ran next; kNoTask: none in the step
  // What the next kernel waited for, over the whole gap, in time order. Of a gap without a next
  // kernel: the end of the critical path.
  std::vector<PathPiece> path;
  Picoseconds length() const { return to - from; }
};

// The `count` longest of all ranks, or of the rank with index `rank` where that is not negative;
// longest first, ties by rank and time.
std::vector<IdleGap> LongestGaps(const ReplayGraph& graph, const Run& run, std::size_t count,
                                 std::int32_t rank);

// Time of pieces by who spent it on what: the longest first.
struct Share {
  std::int32_t rank = 0;  // global
  std::int32_t cls = -1;  // OpClasses; -1: not an operation (PieceKind is not kWork)
  PieceKind kind = PieceKind::kWork;
  Picoseconds time;
  TaskId longest = kNoTask;  // operation of the longest such piece
};
std::vector<Share> SharesOf(const ReplayGraph& graph, const OpClasses& classes,
                            const std::vector<PathPiece>& pieces);

}  // namespace optimus::traces
