#pragma once
// One rank's slots of DualPipe and DualPipeV, which are one schedule: DualPipe on 2h ranks is, for
// a rank and its mirror image, DualPipeV's on h ranks.

#include <cstdint>
#include <vector>

#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

// A chunk and the first of the micro-batches that pass it.
struct Way {
  std::int32_t chunk = 0;
  std::int32_t first_micro_batch = 0;
};

struct DualRank {
  int depth = 1;          // ranks from where micro-batches enter to where the two ways meet
  int distance = 0;       // of this rank from where they enter, 0 <= distance < depth
  int micro_batches = 0;  // of each way, at least 2 * depth
  Way near, far;  // the way that enters at distance 0, and the one that ends its forwards there
};

// All slots in order: forwards of `near` alone; of both ways in turn; of `far` alone, each after a
// backward of `far` whose weight gradients follow at once; the steady state, in which a forward of
// one way shares the stage with a backward of the other; then backwards. Weight gradients of the
// last backwards are put off into what would be idle time, oldest first.
std::vector<Slot> DualPipeSlots(const DualRank& rank);

}  // namespace optimus::pipeline
