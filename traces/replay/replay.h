#pragma once
// Runs a rebuilt trace again: when every operation starts and ends if durations are as they were,
// or as a what-if says. Operations start as soon as what they wait for allows (graph.h); links are
// not shared anew: what a recorded transfer lost to others is in its recorded time.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "traces/replay/graph.h"

namespace optimus::traces {

// What a run takes instead of the recorded numbers, by task and by transfer.
struct Durations {
  std::vector<Picoseconds> task;      // Task::duration; of members of transfers not looked at
  std::vector<Picoseconds> transfer;  // Transfer::duration
  std::vector<Picoseconds> lag;       // Task::lag
};
Durations RecordedDurations(const ReplayGraph& graph);

// INVALID_ARGUMENT where all durations add up to more than 46 days: times of a run are 64 bits of
// picoseconds, and it cannot be longer than that sum.
absl::Status CheckLength(const ReplayGraph& graph, const Durations& durations);

// Why an operation did not start earlier, or, of one that waits inside, did not end earlier.
enum class BoundBy : std::uint8_t {
  kStart,     // the start of the step
  kLane,      // the operation before it on its lane
  kAfter,     // a dependency
  kLaunch,    // the host call that launched it
  kEvent,     // an event of another stream
  kEndAfter,  // what it synchronises with
  kMessage,   // the send of what it receives
  kMember,    // another member of its collective, or the other side of its message
};

struct TaskRun {
  // A member of a collective that waits inside starts when it is issued (Recording::waits_inside);
  // `moving` is from when on the transfer moves data, the start of everything else.
  Picoseconds start, moving, end;
  // When all that it waits for to start had ended: its lag before it started or, of a member,
  // arrived. Which of them was the last, and why it waited for that one.
  Picoseconds ready;
  TaskId started_after = kNoTask;
  BoundBy start_reason = BoundBy::kStart;
  // The same of its end: what kept it from ending (kMember: from moving) earlier, else as above.
  TaskId bound_by = kNoTask;
  BoundBy reason = BoundBy::kStart;
};

struct Run {
  std::vector<TaskRun> tasks;
  Picoseconds step;  // from the first start of a rank's step to the last end
};

// Needs a graph that Rebuild has returned, and durations that CheckLength lets pass.
Run Replay(const ReplayGraph& graph, const Durations& durations);

// As Replay, for a graph that may have a circle of waiting: INVALID_ARGUMENT with its members.
absl::StatusOr<Run> TryReplay(const ReplayGraph& graph, const Durations& durations);

// The recorded times in the form of a Run, without reasons. Only of a timed graph.
Run RecordedRun(const ReplayGraph& graph);

}  // namespace optimus::traces
