#include "schedule/step/flops.h"

#include "models/accounting.h"

namespace optimus::step {

Flops ModuleFlops(const Module& module, std::int64_t micro_batches) {
  const Flops flops = models::ModelFlops(module.config, micro_batches * module.whole.tokens(),
                                         module.whole.sequence_length);
  return module.frozen ? Flops(flops.value() / 3) : flops;
}

Flops HardwareFlops(const ir::Schedule& schedule) {
  double per_lane_rank = 0;
  for (const ir::Program& program : schedule.programs) {
    for (const ir::Operation& op : program.operations) {
      if (op.kind != ir::OperationKind::kKernel) continue;
      per_lane_rank += schedule.kernels[op.work].flops.value();
    }
  }
  return Flops(per_lane_rank * schedule.world.dp * schedule.world.tp / schedule.lanes);
}

}  // namespace optimus::step
