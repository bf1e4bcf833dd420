#include "traces/replay/record_run.h"

#include <algorithm>

namespace optimus::traces {

Recording RecordRun(const ReplayGraph& graph, const Run& run) {
  Recording recording = graph.recording;
  recording.one_clock = true;
  for (std::size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    RecordedRank& recorded = recording.ranks[rank];
    recorded.clock_origin_ns = 0;
    recorded.step_start = graph.step_start[rank];
    recorded.step_end = recorded.step_start;
    for (std::size_t id = 0; id < recorded.ops.size(); ++id) {
      // What a clock's correction put before the start of the step stays there: at 0.
      const TaskRun& times = run.tasks[graph.first_task[rank] + id];
      recorded.ops[id].start = std::max(times.start, Picoseconds(0));
      recorded.ops[id].end = std::max(times.end, recorded.ops[id].start);
      recorded.step_end = std::max(recorded.step_end, recorded.ops[id].end);
    }
    recorded.step_end += graph.step_tail[rank];
  }
  recording.steps.clear();
  return recording;
}

}  // namespace optimus::traces
