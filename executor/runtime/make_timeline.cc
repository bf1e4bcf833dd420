// Measured times to a Timeline. Clocks are not perfect: an event may be stamped a little late or
// early, and the clocks of two nodes differ. So nothing here relies on times of different ranks or
// streams being in order; what would be negative is cut to nothing, and every rank still adds up.

#include <algorithm>
#include <limits>

#include "executor/runtime/run.h"
#include "schedule/ir/bubbles.h"
#include "schedule/ir/stall_account.h"

namespace optimus::executor {
namespace {

struct Window {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
  Picoseconds Since(std::int64_t time_ns) const { return Picoseconds((time_ns - begin_ns) * 1000); }
};

Window WindowOf(const std::vector<std::vector<OperationTime>>& times) {
  Window window;
  for (const std::vector<OperationTime>& rank : times) {
    for (const OperationTime& time : rank) {
      window.begin_ns = std::min(window.begin_ns, time.begin_ns);
      window.end_ns = std::max({window.end_ns, time.begin_ns, time.end_ns});
    }
  }
  if (window.begin_ns > window.end_ns) window.begin_ns = window.end_ns = 0;  // no operations
  return window;
}

// A compute operation begins as soon as it can: when the one before it and its dependencies have
// ended. What passes until the device really has it going is the cost of launching it, and so its
// own.
ir::RankAccount AccountOf(const ir::Schedule& schedule, const ir::Program& program,
                          const std::vector<Picoseconds>& ends, Picoseconds step) {
  const std::vector<ir::BubbleClass> causes = ir::ClassifyDependencies(schedule, program);
  ir::StallAccount account;
  Picoseconds previous;
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    if (!ir::IsCompute(op)) {
      account.OtherEnded(id, ends[id], ir::TailClass(schedule, op));
      continue;
    }
    const Picoseconds end = std::max(ends[id], previous);
    Picoseconds start = previous;
    for (std::size_t i = op.first_dependency; i < op.first_dependency + op.dependency_count; ++i) {
      const Picoseconds until = std::min(ends[program.dependencies[i]], end);
      account.WaitUntil(until, causes[i]);
      start = std::max(start, until);
    }
    account.Run(start, end, ir::IsOptimizerCompute(op));
    previous = end;
  }
  return account.Finish(step);
}

}  // namespace

ir::Timeline MakeTimeline(const ir::Schedule& schedule,
                          const std::vector<std::vector<OperationTime>>& times,
                          const std::string& runner) {
  const Window window = WindowOf(times);
  ir::Timeline timeline;
  timeline.runner = runner;
  timeline.step = window.Since(window.end_ns);
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(times.size()); ++rank) {
    const ir::Program& program = schedule.programs[PlaceOf(schedule, rank).program];
    std::vector<Picoseconds> ends;
    for (std::uint32_t id = 0; id < times[rank].size(); ++id) {
      const OperationTime& time = times[rank][id];
      const Picoseconds start = window.Since(time.begin_ns);
      ends.push_back(std::max(start, window.Since(time.end_ns)));
      timeline.spans.push_back({rank, id, start, ends.back()});
    }
    timeline.entities.push_back(
        {rank, program.stage, 1, AccountOf(schedule, program, ends, timeline.step), program.lane});
    timeline.operations += static_cast<std::int64_t>(ends.size());
  }
  return timeline;
}

}  // namespace optimus::executor
