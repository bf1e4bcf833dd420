#pragma once
// The idle intervals of one rank's compute stream, each with its cause: what is drawn as the
// "bubbles" track. The rule is that of schedule/ir/bubbles.h, so the intervals of a class add up
// to the rank's account.

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::traces {

struct BubbleInterval {
  Picoseconds start, end;  // start < end
  ir::BubbleClass cause = ir::BubbleClass::kPpOther;
  // Operation (id in the program) whose end was awaited; -1: the end of the step on other ranks, or
  // none.
  std::int64_t awaited = -1;
};

// `starts` and `ends` are indexed by operation id. In time order, not overlapping.
std::vector<BubbleInterval> BubbleIntervals(const ir::Schedule& schedule,
                                            const ir::Program& program,
                                            const std::vector<Picoseconds>& starts,
                                            const std::vector<Picoseconds>& ends, Picoseconds step);

}  // namespace optimus::traces
