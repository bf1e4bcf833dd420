#include "traces/bubble_intervals.h"

#include <algorithm>

#include "schedule/ir/bubbles.h"

namespace optimus::traces {
namespace {

class Cutter {
 public:
  // Idle from the cursor to `until` because of `awaited`; the cursor moves there.
  void Idle(Picoseconds until, ir::BubbleClass cause, std::int64_t awaited) {
    if (until <= cursor_) return;
    intervals_.push_back({cursor_, until, cause, awaited});
    cursor_ = until;
  }
  void Busy(Picoseconds until) { cursor_ = std::max(cursor_, until); }
  std::vector<BubbleInterval> Take() { return std::move(intervals_); }

 private:
  Picoseconds cursor_;
  std::vector<BubbleInterval> intervals_;
};

}  // namespace

std::vector<BubbleInterval> BubbleIntervals(const ir::Schedule& schedule,
                                            const ir::Program& program,
                                            const std::vector<Picoseconds>& starts,
                                            const std::vector<Picoseconds>& ends,
                                            Picoseconds step) {
  const std::vector<ir::BubbleClass> causes = ir::ClassifyDependencies(schedule, program);
  Cutter cutter;
  std::int64_t last_other = -1;
  for (std::uint32_t id = 0; id < program.operations.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    if (!ir::IsCompute(op)) {
      if (last_other < 0 || ends[id] >= ends[last_other]) last_other = id;
      continue;
    }
    const auto dependencies = program.DependenciesOf(op);
    for (std::uint32_t i = 0; i < dependencies.size(); ++i) {
      cutter.Idle(std::min(ends[dependencies[i]], starts[id]), causes[op.first_dependency + i],
                  dependencies[i]);
    }
    // Nothing in a simulated run; in a measured one, the time between cause and start.
    cutter.Idle(starts[id], ir::BubbleClass::kPpOther, -1);
    cutter.Busy(ends[id]);
  }
  if (last_other >= 0) {
    cutter.Idle(ends[last_other], ir::TailClass(schedule, program.operations[last_other]),
                last_other);
  }
  cutter.Idle(step, ir::BubbleClass::kPpCooldown, -1);
  return cutter.Take();
}

}  // namespace optimus::traces
