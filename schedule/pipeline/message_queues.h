#pragma once
// Messages between stages, as they go on the streams of a Schedule: a stage has one stream for what
// its forwards send and one for what its data gradients send, to whatever stage, and on each of
// them messages go one after the other. So a message that lasts longer than a slot makes the next
// one wait.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

class MessageQueues {
 public:
  explicit MessageQueues(int stages) : last_(static_cast<std::size_t>(stages) * 2) {}

  // When the result of a slot that ends at `ready` has arrived, `time` after its message starts.
  // Called in the order of the stage's slots, for forwards and data gradients that go to another
  // stage.
  Picoseconds Send(int stage, SlotKind kind, Picoseconds ready, Picoseconds time) {
    Picoseconds& last =
        last_[static_cast<std::size_t>(stage) * 2 + (kind == SlotKind::kForward ? 0 : 1)];
    last = std::max(last, ready) + time;
    return last;
  }

  void Clear() { std::fill(last_.begin(), last_.end(), Picoseconds(0)); }

 private:
  std::vector<Picoseconds> last_;  // by stage and kind: the arrival of the last message
};

}  // namespace optimus::pipeline
