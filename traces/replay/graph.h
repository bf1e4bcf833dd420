#pragma once
// A recording turned into what can be run again: every operation with all that it waited for.
//
// What an operation waits for:
//   - the operation before it on its lane, where the lane is in order;
//   - what the file says (dependencies, launches, events);
//   - a collective: all its members in the recording. It moves data from when the last one is
//   there,
//     and ends for all at once;
//   - a receive: its send. With MessageRule::kRendezvous both sides wait for each other.
// What a recorded operation started later than all that is its `lag`: launch latency, or something
// that the file does not say. It is kept, so that what is run again unchanged is as long as what
// was recorded. Where it started earlier than the file's own dependencies allow, the overlap is
// kept (WaitEdge::offset).
//
// The duration of a collective is its own work: from the last arrival to the first end of its
// members. What a member waits inside before that comes out of the run again.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

using TaskId = std::uint32_t;  // over all ranks: ReplayGraph::first_task[rank] + operation
inline constexpr TaskId kNoTask = ~TaskId{0};

enum class EdgeKind : std::uint8_t {
  kLane,      // the operation before it on its lane
  kAfter,     // as DependencyKind
  kLaunch,    //
  kEvent,     //
  kEndAfter,  // the task does not end before
  kMessage,   // the same: a receive and its eager send
};

struct WaitEdge {
  TaskId from = kNoTask;
  EdgeKind kind = EdgeKind::kLane;
  // Of a task that starts after `from`: at most 0, how much it overlapped in the recording. Of one
  // that ends after it: what passed between the two ends (a receive may be seen earlier: negative).
  Picoseconds offset;
  bool ends() const { return kind == EdgeKind::kEndAfter || kind == EdgeKind::kMessage; }
};

struct Task {
  Picoseconds start, end;      // recorded, on the common clock; both 0 where nothing was recorded
  Picoseconds duration;        // its own work, without what it waited for; of a transfer: see there
  Picoseconds lag;             // from the last thing that it waited for to its start
  Picoseconds tail;            // of a member of a transfer: from the transfer's end to its own
  std::int32_t rank = 0;       // index into Recording::ranks
  std::int32_t transfer = -1;  // index into ReplayGraph::transfers
  std::uint32_t first_edge = 0;
  std::uint32_t edge_count = 0;
};

// What several recorded tasks do together.
struct Transfer {
  std::uint32_t first_member = 0;  // range in ReplayGraph::members
  std::uint32_t member_count = 0;
  Picoseconds duration;
  Picoseconds lag;  // where members start together: from the last arrival to the start
};

// Operations whose partners were not found, or that contradict what is known of them: all of a
// kind.
struct Unpaired {
  struct Operation {
    std::int32_t rank = 0;  // global
    std::string name;
    Picoseconds time;  // recorded start, from the start of the step
  };
  std::string what, effect;
  std::int64_t count = 0;
  std::vector<Operation> operations;  // the first kMostListed of them, by rank and time
  static constexpr std::size_t kMostListed = 100;
};

// How the clock of a rank was corrected so that collectives end at the same time on all members.
struct ClockCorrection {
  std::int32_t rank = 0;
  Picoseconds correction;      // added to its times
  Picoseconds spread;          // median distance of the ends that it was found from, after it
  std::int64_t transfers = 0;  // that it was found from; 0: none, its clock is as recorded
};

struct ReplayGraph {
  Recording recording;
  std::vector<TaskId> first_task;  // by rank index; one more at the end
  std::vector<Task> tasks;
  std::vector<WaitEdge> edges;
  std::vector<Transfer> transfers;
  std::vector<TaskId> members;
  // By rank index, on the common clock: when its step began, and what passed between its last
  // operation and the end of its step.
  std::vector<Picoseconds> step_start, step_tail;
  Picoseconds step;  // recorded: from the first start of a rank's step to the last end
  bool timed = true;
  std::vector<Unpaired> unpaired;
  std::vector<ClockCorrection> corrections;  // of every rank but the reference; empty: one clock

  std::int32_t rank_of(TaskId task) const { return recording.ranks[tasks[task].rank].rank; }
  const RecordedOp& op(TaskId task) const {
    const auto rank = static_cast<std::size_t>(tasks[task].rank);
    return recording.ranks[rank].ops[task - first_task[rank]];
  }
  const std::string& name(TaskId task) const {
    return recording.names[static_cast<std::size_t>(op(task).name)];
  }
  const Communication* communication(TaskId task) const {
    return recording.ranks[static_cast<std::size_t>(tasks[task].rank)].CommunicationOf(op(task));
  }
  absl::Span<const WaitEdge> EdgesOf(TaskId task) const {
    return absl::MakeConstSpan(edges).subspan(tasks[task].first_edge, tasks[task].edge_count);
  }
  absl::Span<const TaskId> MembersOf(const Transfer& transfer) const {
    return absl::MakeConstSpan(members).subspan(transfer.first_member, transfer.member_count);
  }
};

// When all of several tasks ran, as recorded: from the last start to the first end, which is before
// it where they did not.
struct Overlap {
  Picoseconds start, end;
};
// `members` is not empty.
Overlap OverlapOf(const ReplayGraph& graph, absl::Span<const TaskId> members);

// INVALID_ARGUMENT: a recording without operations; operations that wait for each other in a
// circle, with its members; ranks or times out of range. What cannot be paired is in `unpaired`.
absl::StatusOr<ReplayGraph> Rebuild(Recording recording);

}  // namespace optimus::traces
