#pragma once
// Why something happened as late as it did: the chain of operations, each of which the next waited
// for, walked backwards.

#include <vector>

#include "traces/replay/graph.h"
#include "traces/replay/replay.h"

namespace optimus::traces {

enum class PieceKind : std::uint8_t {
  kWork,   // the operation ran, or its transfer moved data
  kGap,    // it could have started and did not: launch latency, or what the file does not say
  kHost,   // the same of a call on the host: what the host did since its last call
  kStart,  // before the rank's step began
  kEnd,    // behind the last operation, the rank's step went on
};

struct PathPiece {
  TaskId task = kNoTask;  // kStart, kEnd: of whose rank
  PieceKind kind = PieceKind::kWork;
  Picoseconds from, to;
  // Why the operation did not start earlier: what leads from the piece before to this one.
  BoundBy reason = BoundBy::kStart;
  Picoseconds length() const { return to - from; }
};

// What kept `task` from starting before it did, from the time `from` on; in time order, without
// holes from `from` to the task's start (of a member that waits inside: to its arrival).
std::vector<PathPiece> PathToStart(const ReplayGraph& graph, const Run& run, TaskId task,
                                   Picoseconds from);

// The critical path: from 0 to the end of the step, without holes.
std::vector<PathPiece> CriticalPath(const ReplayGraph& graph, const Run& run);

// The task that ends last (with its rank's tail); of several the first.
TaskId LastTask(const ReplayGraph& graph, const Run& run);

}  // namespace optimus::traces
