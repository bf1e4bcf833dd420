#include "sim/simgrid_runner.h"
#include "tools/engine_options.h"
#include "tools/simulate_schedule.h"

namespace optimus::tools {

std::string SimulatorName() { return "SimGrid"; }

absl::StatusOr<ir::Timeline> SimulateSchedule(const ir::Schedule& schedule, const CostModel& costs,
                                              const SimulateOptions& options) {
  sim::Options engine = EngineOptions(options.hardware);
  engine.fidelity = options.every_gpu ? sim::Fidelity::kGpu : sim::Fidelity::kAuto;
  engine.interference = options.interference;
  engine.record_spans = options.every_gpu;
  return sim::SimGridRunner(costs, engine).Run(schedule);
}

}  // namespace optimus::tools
