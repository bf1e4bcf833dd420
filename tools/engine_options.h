#pragma once
// From an experiment's hardware to what the simulator is asked for. Of builds with SimGrid only.

#include "schedule/step/experiment.pb.h"
#include "sim/simgrid_runner.h"

namespace optimus::tools {

// Fabric, slow GPUs and interference as the experiment says; everything else as sim::Options has
// it.
sim::Options EngineOptions(const step::Hardware& hardware);

}  // namespace optimus::tools
