#include "traces/replay/replay.h"

#include <algorithm>
#include <utility>

#include "traces/replay/cycle.h"

namespace optimus::traces {
namespace {

BoundBy ReasonOf(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kLane:
      return BoundBy::kLane;
    case EdgeKind::kAfter:
      return BoundBy::kAfter;
    case EdgeKind::kLaunch:
      return BoundBy::kLaunch;
    case EdgeKind::kEvent:
      return BoundBy::kEvent;
    case EdgeKind::kEndAfter:
      return BoundBy::kEndAfter;
    case EdgeKind::kMessage:
      return BoundBy::kMessage;
  }
  return BoundBy::kAfter;
}

// Kahn's algorithm: an operation is done once all that it waits for is. Times are the longest path,
// so the order in which ready operations are taken does not matter.
class Engine {
 public:
  Engine(const ReplayGraph& graph, const Durations& durations)
      : graph_(graph), durations_(durations) {
    run_.tasks.resize(graph.tasks.size());
    waiting_.resize(graph.tasks.size());
    absent_.reserve(graph.transfers.size());
    for (const Transfer& transfer : graph.transfers) absent_.push_back(transfer.member_count);
    CountSuccessors();
  }

  // False where operations were left that wait for each other.
  bool Go() {
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      if (waiting_[task] == 0) ready_.push_back(task);
    }
    while (!ready_.empty()) {
      const TaskId task = ready_.back();
      ready_.pop_back();
      Arrive(task);
    }
    return done_ == graph_.tasks.size();
  }

  Run Take() {
    run_.step = StepOf();
    return std::move(run_);
  }
  std::vector<bool> Done() const {
    std::vector<bool> done;
    done.reserve(waiting_.size());
    for (const std::uint32_t waiting : waiting_) done.push_back(waiting == kDone);
    return done;
  }

 private:
  static constexpr std::uint32_t kDone = ~std::uint32_t{0};

  void CountSuccessors() {
    first_successor_.resize(graph_.tasks.size() + 1);
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      waiting_[task] = graph_.tasks[task].edge_count;
      for (const WaitEdge& edge : graph_.EdgesOf(task)) ++first_successor_[edge.from + 1];
    }
    for (std::size_t i = 1; i < first_successor_.size(); ++i) {
      first_successor_[i] += first_successor_[i - 1];
    }
    successors_.resize(first_successor_.back());
    std::vector<std::uint32_t> next(first_successor_.begin(), first_successor_.end() - 1);
    for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
      for (const WaitEdge& edge : graph_.EdgesOf(task)) successors_[next[edge.from]++] = task;
    }
  }

  // Takes the last of what `task` waits for to start.
  void FindStart(TaskId task) {
    TaskRun& run = run_.tasks[task];
    run.ready = graph_.step_start[static_cast<std::size_t>(graph_.tasks[task].rank)];
    for (const WaitEdge& edge : graph_.EdgesOf(task)) {
      if (edge.ends()) continue;
      const Picoseconds end = run_.tasks[edge.from].end + edge.offset;
      if (end < run.ready || (end == run.ready && run.started_after != kNoTask)) continue;
      run.ready = end;
      run.started_after = edge.from;
      run.start_reason = ReasonOf(edge.kind);
    }
    run.bound_by = run.started_after;
    run.reason = run.start_reason;
    run.start = run.moving = run.ready + durations_.lag[task];
  }

  // All that it waits for has ended.
  void Arrive(TaskId task) {
    FindStart(task);
    const std::int32_t transfer = graph_.tasks[task].transfer;
    if (transfer < 0) {
      FindEnd(task, durations_.task[task]);
      return Finish(task);
    }
    if (--absent_[static_cast<std::size_t>(transfer)] == 0) {
      Move(graph_.transfers[static_cast<std::size_t>(transfer)],
           durations_.transfer[static_cast<std::size_t>(transfer)]);
    }
  }

  void FindEnd(TaskId task, Picoseconds duration) {
    TaskRun& run = run_.tasks[task];
    run.end = run.moving + duration;
    for (const WaitEdge& edge : graph_.EdgesOf(task)) {
      if (!edge.ends()) continue;
      const Picoseconds end = run_.tasks[edge.from].end + edge.offset;
      if (end <= run.end) continue;
      run.end = end;
      run.bound_by = edge.from;
      run.reason = ReasonOf(edge.kind);
    }
  }

  // All members are there.
  void Move(const Transfer& transfer, Picoseconds duration) {
    TaskId last = graph_.MembersOf(transfer).front();
    for (const TaskId member : graph_.MembersOf(transfer)) {
      if (run_.tasks[member].start > run_.tasks[last].start) last = member;
    }
    const Picoseconds arrived = run_.tasks[last].start;
    const Picoseconds moving = arrived + transfer.lag;
    for (const TaskId member : graph_.MembersOf(transfer)) {
      TaskRun& run = run_.tasks[member];
      if (run.start < arrived) {
        run.bound_by = last;
        run.reason = BoundBy::kMember;
      }
      run.moving = moving;
      if (!graph_.recording.waits_inside) run.start = moving;
      run.end = moving + duration + graph_.tasks[member].tail;
    }
    for (const TaskId member : graph_.MembersOf(transfer)) Finish(member);
  }

  void Finish(TaskId task) {
    waiting_[task] = kDone;
    ++done_;
    for (std::uint32_t i = first_successor_[task]; i < first_successor_[task + 1]; ++i) {
      if (--waiting_[successors_[i]] == 0) ready_.push_back(successors_[i]);
    }
  }

  Picoseconds StepOf() const {
    Picoseconds last;
    for (std::size_t rank = 0; rank < graph_.step_tail.size(); ++rank) {
      Picoseconds end = graph_.step_start[rank];
      for (TaskId task = graph_.first_task[rank]; task < graph_.first_task[rank + 1]; ++task) {
        end = std::max(end, run_.tasks[task].end);
      }
      last = std::max(last, end + graph_.step_tail[rank]);
    }
    return last;
  }

  const ReplayGraph& graph_;
  const Durations& durations_;
  Run run_;
  std::vector<std::uint32_t> waiting_;  // edges whose task has not ended; kDone: it has itself
  std::vector<std::uint32_t> absent_;   // members that have not arrived, by transfer
  std::vector<std::uint32_t> first_successor_;
  std::vector<TaskId> successors_;
  std::vector<TaskId> ready_;
  std::size_t done_ = 0;
};

}  // namespace

Durations RecordedDurations(const ReplayGraph& graph) {
  Durations durations;
  durations.task.reserve(graph.tasks.size());
  durations.lag.reserve(graph.tasks.size());
  for (const Task& task : graph.tasks) {
    durations.task.push_back(task.duration);
    durations.lag.push_back(task.lag);
  }
  durations.transfer.reserve(graph.transfers.size());
  for (const Transfer& transfer : graph.transfers) durations.transfer.push_back(transfer.duration);
  return durations;
}

absl::Status CheckLength(const ReplayGraph& graph, const Durations& durations) {
  constexpr std::int64_t kMost = 4'000'000'000'000'000'000;
  __int128 sum = 0;
  const auto add = [&sum](Picoseconds time) {
    if (time > Picoseconds(0)) sum += time.value();
  };
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    add(durations.task[task]);
    add(durations.lag[task]);
    add(graph.tasks[task].tail);
    for (const WaitEdge& edge : graph.EdgesOf(task)) add(edge.offset);
  }
  for (std::size_t i = 0; i < graph.transfers.size(); ++i) {
    add(durations.transfer[i]);
    add(graph.transfers[i].lag);
  }
  if (sum <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the times of all operations add up to more than 46 days, which picoseconds cannot count; "
      "hint: are these times microseconds?");
}

absl::StatusOr<Run> TryReplay(const ReplayGraph& graph, const Durations& durations) {
  Engine engine(graph, durations);
  if (!engine.Go()) return CycleError(graph, engine.Done());
  return engine.Take();
}

Run Replay(const ReplayGraph& graph, const Durations& durations) {
  Engine engine(graph, durations);
  engine.Go();
  return engine.Take();
}

Run RecordedRun(const ReplayGraph& graph) {
  Run run;
  run.step = graph.step;
  run.tasks.resize(graph.tasks.size());
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    run.tasks[task].start = run.tasks[task].moving = graph.tasks[task].start;
    run.tasks[task].end = graph.tasks[task].end;
  }
  for (const Transfer& transfer : graph.transfers) {
    const Picoseconds arrived = OverlapOf(graph, graph.MembersOf(transfer)).start;
    for (const TaskId member : graph.MembersOf(transfer)) {
      run.tasks[member].moving = std::min(arrived, run.tasks[member].end);
    }
  }
  return run;
}

}  // namespace optimus::traces
