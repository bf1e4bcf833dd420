#include "traces/replay/graph.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "traces/replay/align.h"
#include "traces/replay/infer.h"
#include "traces/replay/match.h"
#include "traces/replay/replay.h"

namespace optimus::traces {
namespace {

// Times beyond it cannot be added up.
constexpr Picoseconds kLongest{1'000'000'000'000'000'000};
// Clocks that are further apart have nothing to do with each other (seconds since the machine was
// started, and since 1970).
constexpr std::int64_t kRelatedNs = 86'400'000'000'000;

EdgeKind KindOf(DependencyKind kind) {
  switch (kind) {
    case DependencyKind::kAfter:
      return EdgeKind::kAfter;
    case DependencyKind::kLaunch:
      return EdgeKind::kLaunch;
    case DependencyKind::kEvent:
      return EdgeKind::kEvent;
    case DependencyKind::kEndAfter:
      return EdgeKind::kEndAfter;
  }
  return EdgeKind::kAfter;
}

class Rebuilder {
 public:
  explicit Rebuilder(ReplayGraph& graph) : graph_(graph) {}

  absl::Status Go() {
    if (absl::Status status = AddTasks(); !status.ok()) return status;
    Matches matches = FindMatches(graph_);
    Align(matches.matches);
    Normalize();
    for (const Matches::Single& single : matches.singles) {
      List(single.task, single.what, single.effect);
    }
    DropApart(matches.matches);
    AddEdges(matches.matches);
    AddTransfers(matches.matches);
    FindLags();
    SortUnpaired();
    const Durations durations = RecordedDurations(graph_);
    if (absl::Status status = CheckLength(graph_, durations); !status.ok()) return status;
    return TryReplay(graph_, durations).status();
  }

 private:
  absl::Status AddTasks();
  absl::Status AddRank(std::size_t rank, Picoseconds shift);
  Picoseconds ShiftOf(std::size_t rank);
  Picoseconds StartOf(const RecordedRank& rank);
  void Align(const std::vector<Match>& matches);
  void Normalize();
  void DropApart(std::vector<Match>& matches);
  void AddEdges(const std::vector<Match>& matches);
  void AddEdgesOf(TaskId task, TaskId before_on_lane, TaskId sender);
  WaitEdge EndEdge(TaskId task, TaskId from, EdgeKind kind);
  WaitEdge StartEdge(TaskId task, TaskId from, EdgeKind kind);
  void AddTransfers(const std::vector<Match>& matches);
  void AddTransfer(const Match& match);
  void FindLags();
  Picoseconds ReadyTime(TaskId task) const;
  void List(TaskId task, const std::string& what, const std::string& effect);
  void List(const std::string& what, const std::string& effect, Unpaired::Operation operation);
  void SortUnpaired();

  ReplayGraph& graph_;
  std::map<std::pair<std::string, std::string>, Unpaired> unpaired_;
};

void Rebuilder::List(TaskId task, const std::string& what, const std::string& effect) {
  List(what, effect, {graph_.rank_of(task), graph_.name(task), graph_.tasks[task].start});
}

void Rebuilder::List(const std::string& what, const std::string& effect,
                     Unpaired::Operation operation) {
  Unpaired& all = unpaired_[{what, effect}];
  ++all.count;
  if (all.operations.size() < Unpaired::kMostListed) all.operations.push_back(std::move(operation));
}

void Rebuilder::SortUnpaired() {
  for (auto& [key, all] : unpaired_) {
    all.what = key.first;
    all.effect = key.second;
    graph_.unpaired.push_back(std::move(all));
  }
}

// What is added to the times of a rank so that they count from where rank index 0's do.
Picoseconds Rebuilder::ShiftOf(std::size_t rank) {
  const std::vector<RecordedRank>& ranks = graph_.recording.ranks;
  const RecordedRank& first = ranks.front();
  // Unsigned: whatever a file says must not overflow.
  const auto difference =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(ranks[rank].clock_origin_ns) -
                                static_cast<std::uint64_t>(first.clock_origin_ns));
  const bool wraps = (ranks[rank].clock_origin_ns < first.clock_origin_ns) != (difference < 0);
  if (!wraps && difference > -kRelatedNs && difference < kRelatedNs) {
    return Picoseconds(difference * 1000);
  }
  List("rank whose clock has nothing to do with that of the first rank",
       "its step starts when the first rank's does, before collectives correct its clock",
       {ranks[rank].rank, ranks[rank].source, Picoseconds(0)});
  return first.step_start - ranks[rank].step_start;
}

absl::Status Rebuilder::AddTasks() {
  std::size_t count = 0;
  for (const RecordedRank& rank : graph_.recording.ranks) count += rank.ops.size();
  if (count == 0) {
    return absl::InvalidArgumentError(
        "the trace has no operations; hint: was the profiler told to record the GPU?");
  }
  if (count >= kNoTask) return absl::InvalidArgumentError("the trace has too many operations");
  graph_.tasks.reserve(count);
  for (std::size_t rank = 0; rank < graph_.recording.ranks.size(); ++rank) {
    if (absl::Status status = AddRank(rank, ShiftOf(rank)); !status.ok()) return status;
  }
  graph_.first_task.push_back(static_cast<TaskId>(graph_.tasks.size()));
  return absl::OkStatus();
}

// Where the GPU runs behind its host, it is still at the step before when the profiler's step
// begins: its first operation waits in the queue. Then the step is that of the GPU, from this
// operation on; calls of the host before it lie before the start.
Picoseconds Rebuilder::StartOf(const RecordedRank& rank) {
  constexpr Picoseconds kBehind{100'000'000};  // 100 us: launches take some tens
  for (const RecordedOp& op : rank.ops) {
    if (op.kind == OpKind::kHost || !op.timed()) continue;
    for (const Dependency& dependency : rank.DependenciesOf(op)) {
      if (dependency.kind != DependencyKind::kLaunch) continue;
      const RecordedOp& launch = rank.ops[dependency.op];
      if (!launch.timed() || op.start - launch.end < kBehind) return rank.step_start;
      const double behind_ms = ToMicroseconds(op.start - launch.end) / 1000;
      const std::string& name = graph_.recording.names[static_cast<std::size_t>(op.name)];
      List("rank whose GPU was still at the step before when the step began",
           "its step counts from its first operation on the GPU; how long the host would need "
           "alone is not known",
           {rank.rank, absl::StrCat(behind_ms, " ms behind: ", name), Picoseconds(0)});
      return op.start;
    }
    return rank.step_start;
  }
  return rank.step_start;
}

absl::Status Rebuilder::AddRank(std::size_t rank, Picoseconds shift) {
  const RecordedRank& recorded = graph_.recording.ranks[rank];
  for (const Picoseconds time : {recorded.step_start, recorded.step_end}) {
    if (time < -kLongest || time > kLongest) {
      return absl::InvalidArgumentError(
          absl::StrCat(recorded.source, ": rank ", recorded.rank,
                       ": its step begins or ends more than 11.6 days from its clock's origin"));
    }
  }
  graph_.first_task.push_back(static_cast<TaskId>(graph_.tasks.size()));
  graph_.step_start.push_back(StartOf(recorded) + shift);
  graph_.step_tail.push_back(recorded.step_end + shift);  // the end, until Normalize
  for (std::size_t id = 0; id < recorded.ops.size(); ++id) {
    const RecordedOp& op = recorded.ops[id];
    if (op.end > kLongest) {
      return absl::InvalidArgumentError(absl::StrCat(
          recorded.source, ": rank ", recorded.rank, ", operation ", id,
          ": ends later than 11.6 days after the start of the trace; hint: are these times "
          "microseconds?"));
    }
    Task task;
    task.rank = static_cast<std::int32_t>(rank);
    graph_.timed = graph_.timed && op.timed();
    if (op.timed()) {
      task.start = op.start + shift;
      task.end = op.end + shift;
      task.duration = op.duration();
    }
    graph_.tasks.push_back(task);
  }
  return absl::OkStatus();
}

void Rebuilder::Align(const std::vector<Match>& matches) {
  graph_.corrections = FindCorrections(graph_, matches);
  for (std::size_t i = 0; i < graph_.corrections.size(); ++i) {
    const Picoseconds correction = graph_.corrections[i].correction;
    const std::size_t rank = i + 1;  // the first is the reference
    graph_.step_start[rank] += correction;
    graph_.step_tail[rank] += correction;
    for (TaskId task = graph_.first_task[rank]; task < graph_.first_task[rank + 1]; ++task) {
      graph_.tasks[task].start += correction;
      graph_.tasks[task].end += correction;
    }
  }
}

// Times count from the first start of a rank's step; what was before it is negative.
void Rebuilder::Normalize() {
  if (!graph_.timed) {
    for (std::size_t rank = 0; rank < graph_.step_start.size(); ++rank) {
      graph_.step_start[rank] = graph_.step_tail[rank] = Picoseconds(0);
    }
    for (Task& task : graph_.tasks) task.start = task.end = Picoseconds(0);
    return;
  }
  Picoseconds first = *std::min_element(graph_.step_start.begin(), graph_.step_start.end());
  for (Task& task : graph_.tasks) {
    task.start -= first;
    task.end -= first;
  }
  for (std::size_t rank = 0; rank < graph_.step_start.size(); ++rank) {
    graph_.step_start[rank] -= first;
    const Picoseconds step_end = graph_.step_tail[rank] - first;
    Picoseconds last = graph_.step_start[rank];
    for (TaskId task = graph_.first_task[rank]; task < graph_.first_task[rank + 1]; ++task) {
      last = std::max(last, graph_.tasks[task].end);
    }
    graph_.step_tail[rank] = std::max(Picoseconds(0), step_end - last);
    graph_.step = std::max(graph_.step, last + graph_.step_tail[rank]);
  }
}

// Members that did not run at the same time did not wait for each other: a small message is sent
// before its receive is posted.
void Rebuilder::DropApart(std::vector<Match>& matches) {
  if (!graph_.timed) return;
  const auto apart = [this](const Match& match) {
    const Overlap overlap = OverlapOf(graph_, match.members);
    return !match.eager && overlap.start > overlap.end;
  };
  const auto kept = std::stable_partition(matches.begin(), matches.end(),
                                          [&](const Match& match) { return !apart(match); });
  for (auto match = kept; match != matches.end(); ++match) {
    for (const TaskId member : match->members) {
      List(member, "communication whose two sides did not run at the same time",
           "they do not wait for each other");
    }
  }
  matches.erase(kept, matches.end());
}

WaitEdge Rebuilder::StartEdge(TaskId task, TaskId from, EdgeKind kind) {
  WaitEdge edge;
  edge.from = from;
  edge.kind = kind;
  edge.offset = std::min(Picoseconds(0), graph_.tasks[task].start - graph_.tasks[from].end);
  const bool contradicts = edge.offset < Picoseconds(0) && kind != EdgeKind::kLane &&
                           kind != EdgeKind::kLaunch;  // a kernel starts before its launch returns
  if (contradicts) {
    List(task, "operation that started before what the file says it depends on had ended",
         "the overlap is kept");
  }
  return edge;
}

// Of a task that was seen waiting, its own work is what passed after the wait; one that was not
// waits in vain for its whole duration.
WaitEdge Rebuilder::EndEdge(TaskId task, TaskId from, EdgeKind kind) {
  Task& waiting = graph_.tasks[task];
  const Picoseconds awaited = graph_.tasks[from].end;
  WaitEdge edge;
  edge.from = from;
  edge.kind = kind;
  if (awaited <= waiting.start) {
    edge.offset = kind == EdgeKind::kMessage ? Picoseconds(0) : waiting.duration;
    return edge;
  }
  edge.offset = waiting.end - awaited;
  if (kind == EdgeKind::kEndAfter) edge.offset = std::max(edge.offset, Picoseconds(0));
  waiting.duration = std::min(waiting.duration, std::max(edge.offset, Picoseconds(0)));
  return edge;
}

void Rebuilder::AddEdgesOf(TaskId task, TaskId before_on_lane, TaskId sender) {
  const RecordedOp& op = graph_.op(task);
  const RecordedRank& rank =
      graph_.recording.ranks[static_cast<std::size_t>(graph_.tasks[task].rank)];
  const TaskId first = graph_.first_task[static_cast<std::size_t>(graph_.tasks[task].rank)];
  const auto begin = static_cast<std::uint32_t>(graph_.edges.size());
  graph_.tasks[task].first_edge = begin;
  if (before_on_lane != kNoTask) {
    graph_.edges.push_back(StartEdge(task, before_on_lane, EdgeKind::kLane));
  }
  for (const Dependency& dependency : rank.DependenciesOf(op)) {
    const TaskId from = first + dependency.op;
    const EdgeKind kind = KindOf(dependency.kind);
    graph_.edges.push_back(kind == EdgeKind::kEndAfter ? EndEdge(task, from, kind)
                                                       : StartEdge(task, from, kind));
  }
  if (sender != kNoTask) graph_.edges.push_back(EndEdge(task, sender, EdgeKind::kMessage));
  graph_.tasks[task].edge_count = static_cast<std::uint32_t>(graph_.edges.size()) - begin;
}

void Rebuilder::AddEdges(const std::vector<Match>& matches) {
  std::vector<TaskId> sender(graph_.tasks.size(), kNoTask);
  for (const Match& match : matches) {
    if (match.eager) sender[match.members.back()] = match.members.front();
  }
  for (std::size_t rank = 0; rank < graph_.recording.ranks.size(); ++rank) {
    const RecordedRank& recorded = graph_.recording.ranks[rank];
    std::vector<TaskId> last(recorded.lanes.size(), kNoTask);
    for (TaskId task = graph_.first_task[rank]; task < graph_.first_task[rank + 1]; ++task) {
      const auto lane = static_cast<std::size_t>(graph_.op(task).lane);
      AddEdgesOf(task, recorded.lanes[lane].in_order ? last[lane] : kNoTask, sender[task]);
      last[lane] = task;
    }
  }
}

void Rebuilder::AddTransfers(const std::vector<Match>& matches) {
  for (const Match& match : matches) {
    if (!match.eager && match.members.size() > 1) AddTransfer(match);
  }
}

void Rebuilder::AddTransfer(const Match& match) {
  Transfer transfer;
  transfer.first_member = static_cast<std::uint32_t>(graph_.members.size());
  transfer.member_count = static_cast<std::uint32_t>(match.members.size());
  const Overlap overlap = OverlapOf(graph_, match.members);
  if (graph_.timed) {
    transfer.duration = overlap.end - overlap.start;
  } else {
    for (const TaskId member : match.members) {
      transfer.duration = std::max(transfer.duration, graph_.tasks[member].duration);
    }
  }
  for (const TaskId member : match.members) {
    Task& task = graph_.tasks[member];
    task.transfer = static_cast<std::int32_t>(graph_.transfers.size());
    if (graph_.timed) task.tail = task.end - overlap.end;
    graph_.members.push_back(member);
  }
  graph_.transfers.push_back(transfer);
}

// When `task` could have started by what it waits for.
Picoseconds Rebuilder::ReadyTime(TaskId task) const {
  Picoseconds ready = graph_.step_start[static_cast<std::size_t>(graph_.tasks[task].rank)];
  for (const WaitEdge& edge : graph_.EdgesOf(task)) {
    if (!edge.ends()) ready = std::max(ready, graph_.tasks[edge.from].end + edge.offset);
  }
  return ready;
}

void Rebuilder::FindLags() {
  if (!graph_.timed) return;
  const bool together = !graph_.recording.waits_inside;
  for (TaskId task = 0; task < graph_.tasks.size(); ++task) {
    if (together && graph_.tasks[task].transfer >= 0) continue;
    graph_.tasks[task].lag = graph_.tasks[task].start - ReadyTime(task);
  }
  if (!together) return;
  for (Transfer& transfer : graph_.transfers) {
    Picoseconds start, ready;
    for (const TaskId member : graph_.MembersOf(transfer)) {
      start = std::max(start, graph_.tasks[member].start);
      ready = std::max(ready, ReadyTime(member));
    }
    transfer.lag = std::max(Picoseconds(0), start - ready);
  }
}

}  // namespace

Overlap OverlapOf(const ReplayGraph& graph, absl::Span<const TaskId> members) {
  Overlap overlap = {graph.tasks[members.front()].start, graph.tasks[members.front()].end};
  for (const TaskId member : members) {
    overlap.start = std::max(overlap.start, graph.tasks[member].start);
    overlap.end = std::min(overlap.end, graph.tasks[member].end);
  }
  return overlap;
}

absl::StatusOr<ReplayGraph> Rebuild(Recording recording) {
  if (absl::Status status = CheckRecording(recording); !status.ok()) return status;
  if (recording.ranks.empty()) return absl::InvalidArgumentError("the trace has no ranks");
  InferStreamWaits(recording);
  ReplayGraph graph;
  graph.recording = std::move(recording);
  if (absl::Status status = Rebuilder(graph).Go(); !status.ok()) return status;
  return graph;
}

}  // namespace optimus::traces
