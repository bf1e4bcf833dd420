#pragma once
// From an order of micro-batches and the items of every virtual stage to the programs of the
// pipeline stages.

#include <vector>

#include "absl/status/status.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/virtual_stages.h"

namespace optimus::step {

// Fills schedule.programs; schedule.world and micro_batches must be set. `virtual_stages` are those
// of the order's placing.
void LowerPipeline(const Plan& plan, const hw::ProfileCostModel& costs,
                   const pipeline::Order& order, const std::vector<VirtualStage>& virtual_stages,
                   ir::Schedule& schedule);

}  // namespace optimus::step
