#pragma once
// Idle time of a lane as the list scheduler sees it: outer and inner slots alike. Times are those
// of the LLM alone (0: its step starts). A lane is idle without end before the LLM's first
// operation (the LLM can start later) and after its last.

#include <cstdint>
#include <vector>

#include "schedule/bubble/slots.h"

namespace optimus::bubble {

using Ps = std::int64_t;                     // picoseconds, where loops are hot
inline constexpr Ps kForever = Ps{1} << 62;  // CheckProblem keeps all times far below

// All idle slots of a lane of this stage: the first starts at -kForever, the last ends at kForever.
LaneSlots AllSlots(const LlmStage& stage);

// The same with time running backwards.
Slots Mirror(const Slots& slots);

// How much idle time lies where.
class Capacity {
 public:
  // `slots` not empty, from -kForever to kForever.
  explicit Capacity(const Slots& slots);
  // Idle time in [0, at]; for at < 0, minus the idle time in [at, 0].
  Ps Before(Ps at) const;
  // The least time at which Before is `amount`; both are `scale` times as large as they are, so
  // that parts of picoseconds can be told apart. `amount` is above Before(-kForever).
  Ps Reach(Ps amount, Ps scale = 1) const;

 private:
  Slots slots_;
  std::vector<Ps> before_;  // by slot: Before(its start)
};

}  // namespace optimus::bubble
