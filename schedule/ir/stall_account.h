#pragma once
// The account of one compute stream, kept while it runs: what a runner calls when it starts and
// ends operations. Times count from the start of the step. The rule it follows is in
// schedule/ir/bubbles.h.

#include <cstdint>

#include "schedule/ir/timeline.h"

namespace optimus::ir {

class StallAccount {
 public:
  // The next compute operation could not start before `until` because of a dependency of class
  // `cause`. Nothing is added where the stream was busy, or already accounted as idle, until then.
  // Call it for the dependencies of an operation in listed order.
  void WaitUntil(Picoseconds until, BubbleClass cause);

  // A compute operation ran. Idle time before `start` that no WaitUntil explained (a measured
  // launch gap, for example) counts as kPpOther. Calls come in the order of the stream.
  void Run(Picoseconds start, Picoseconds end, bool optimizer);

  // Operation `id` of another stream ended; `tail` (TailClass of bubbles.h) is its class where it
  // outlasts the compute stream. Any order: of equal ends the highest id counts.
  void OtherEnded(std::uint32_t id, Picoseconds end, BubbleClass tail);

  // `step` is the end of the whole step, not before the end of any operation reported here. The
  // result adds up to it exactly.
  RankAccount Finish(Picoseconds step) const;

 private:
  RankAccount account_;
  Picoseconds accounted_;  // everything before it has its cause
  Picoseconds last_other_end_;
  std::uint32_t last_other_ = 0;
  BubbleClass tail_ = BubbleClass::kPpCooldown;
};

}  // namespace optimus::ir
