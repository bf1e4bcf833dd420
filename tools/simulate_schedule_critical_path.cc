#include "base/status_macros.h"
#include "schedule/ir/critical_path.h"
#include "tools/simulate_schedule.h"

namespace optimus::tools {
namespace {

// The runner runs one rank of every stage and lane, which stands for all that run its program.
ir::Timeline ForEveryGpu(const ir::Schedule& schedule, const ir::Timeline& folded) {
  ir::Timeline timeline = folded;
  timeline.entities.clear();
  timeline.spans.clear();
  timeline.operations = 0;
  for (int rank = 0; rank < schedule.world.gpus(); ++rank) {
    const int t = rank % schedule.world.tp;
    const int stage = rank / schedule.world.tp / schedule.world.dp;
    const ir::Program& program =
        schedule.programs[ir::ProgramIndex(schedule, stage, ir::LaneOf(schedule, t))];
    const std::int32_t first = ir::FirstRankOf(schedule, program);
    for (ir::EntityAccount entity : folded.entities) {
      if (entity.rank != first) continue;
      entity.rank = rank;
      entity.gpus = 1;
      timeline.entities.push_back(entity);
    }
    for (ir::Span span : folded.spans) {
      if (span.rank != first) continue;
      span.rank = rank;
      timeline.spans.push_back(span);
      ++timeline.operations;
    }
  }
  return timeline;
}

}  // namespace

std::string SimulatorName() {
  return "the contention-free runner (this build has no SimGrid; links are never shared, and "
         "kernels and collectives do not slow each other)";
}

absl::StatusOr<ir::Timeline> SimulateSchedule(const ir::Schedule& schedule, const CostModel& costs,
                                              const SimulateOptions& options) {
  OPTIMUS_ASSIGN_OR_RETURN(ir::Timeline timeline, ir::CriticalPathRunner(costs).Run(schedule));
  return options.every_gpu ? ForEveryGpu(schedule, timeline) : timeline;
}

}  // namespace optimus::tools
