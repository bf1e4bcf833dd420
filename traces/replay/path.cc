#include "traces/replay/path.h"

#include <algorithm>

namespace optimus::traces {
namespace {

// Walks backwards from a point of a task; `at_` only ever falls, to `from_`.
class Walker {
 public:
  Walker(const ReplayGraph& graph, const Run& run, Picoseconds from, Picoseconds at)
      : graph_(graph), run_(run), from_(from), at_(at) {}

  void FromEnd(TaskId task) {
    // A path cannot be longer than there are operations: overlaps of no length end there at last.
    for (std::size_t i = 0; i < 2 * graph_.tasks.size() + 2 && at_ > from_; ++i) {
      task = at_end_ ? PassEnd(task) : PassStart(task);
      if (task == kNoTask) break;
    }
  }
  void FromStart(TaskId task) {
    at_end_ = false;
    FromEnd(task);
  }
  void Add(TaskId task, PieceKind kind, Picoseconds from, BoundBy reason) {
    from = std::clamp(from, from_, at_);
    const bool host = kind == PieceKind::kGap && graph_.op(task).kind == OpKind::kHost;
    if (host) kind = PieceKind::kHost;
    if (from < at_) pieces_.push_back({task, kind, from, at_, reason});
    at_ = from;
  }
  std::vector<PathPiece> Take() {
    std::reverse(pieces_.begin(), pieces_.end());
    return std::move(pieces_);
  }

 private:
  static bool BoundsEnd(BoundBy reason) {
    return reason == BoundBy::kEndAfter || reason == BoundBy::kMessage;
  }

  // At the end of `task`: what it did, and what to go on with.
  TaskId PassEnd(TaskId task) {
    const TaskRun& run = run_.tasks[task];
    if (BoundsEnd(run.reason)) {
      Add(task, PieceKind::kWork, std::min(run_.tasks[run.bound_by].end, run.end), run.reason);
      return run.bound_by;
    }
    Add(task, PieceKind::kWork, run.moving, run.reason);
    at_end_ = false;
    return run.reason == BoundBy::kMember ? run.bound_by : task;
  }

  // At the start (arrival) of `task`.
  TaskId PassStart(TaskId task) {
    const TaskRun& run = run_.tasks[task];
    if (run.started_after == kNoTask) {
      const auto rank = static_cast<std::size_t>(graph_.tasks[task].rank);
      Add(task, PieceKind::kGap, graph_.step_start[rank], BoundBy::kStart);
      Add(task, PieceKind::kStart, Picoseconds(0), BoundBy::kStart);
      return kNoTask;
    }
    Add(task, PieceKind::kGap, run.ready, run.start_reason);
    at_end_ = true;
    return run.started_after;
  }

  const ReplayGraph& graph_;
  const Run& run_;
  Picoseconds from_, at_;
  bool at_end_ = true;
  std::vector<PathPiece> pieces_;
};

}  // namespace

std::vector<PathPiece> PathToStart(const ReplayGraph& graph, const Run& run, TaskId task,
                                   Picoseconds from) {
  Walker walker(graph, run, from, run.tasks[task].start);
  walker.FromStart(task);
  return walker.Take();
}

TaskId LastTask(const ReplayGraph& graph, const Run& run) {
  TaskId last = 0;
  const auto end = [&](TaskId task) {
    return run.tasks[task].end + graph.step_tail[static_cast<std::size_t>(graph.tasks[task].rank)];
  };
  for (TaskId task = 1; task < graph.tasks.size(); ++task) {
    if (end(task) > end(last)) last = task;
  }
  return last;
}

std::vector<PathPiece> CriticalPath(const ReplayGraph& graph, const Run& run) {
  const TaskId last = LastTask(graph, run);
  Walker walker(graph, run, Picoseconds(0), run.step);
  walker.Add(last, PieceKind::kEnd, run.tasks[last].end, BoundBy::kStart);
  walker.FromEnd(last);
  return walker.Take();
}

}  // namespace optimus::traces
