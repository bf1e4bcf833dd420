#pragma once
// What a simulation hands back.

#include "schedule/ir/timeline.h"
#include "sim/simgrid_runner.h"

namespace optimus::sim {

struct Outcome {
  ir::Timeline timeline;
  RunStats stats;
};

}  // namespace optimus::sim
