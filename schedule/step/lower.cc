#include "schedule/step/lower.h"

#include <algorithm>
#include <utility>

#include "schedule/step/data_parallel.h"
#include "schedule/step/program_builder.h"
#include "schedule/step/slot_writer.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {
namespace {

// A tied table and the two stages that hold it; with two copies of the model one of each. There the
// lower stage of the embedding is with the lower one of the head: both have the same part in the
// reductions of their own copies, so the same shards.
std::vector<TiedTable> FindTiedTables(const Placing& placing,
                                      const std::vector<VirtualStage>& virtual_stages) {
  std::int64_t parameters = 0;
  std::vector<std::vector<int>> holders;  // of the embedding, of the head
  for (int v = 0; v < static_cast<int>(virtual_stages.size()); ++v) {
    if (virtual_stages[v].tied_parameters == 0) continue;
    parameters = virtual_stages[v].tied_parameters;
    std::vector<int>& stages = holders.emplace_back();
    for (const pipeline::Place place : placing.PlacesOf(v)) stages.push_back(place.stage);
    std::sort(stages.begin(), stages.end());
  }
  std::vector<TiedTable> tables;
  for (std::size_t i = 0; holders.size() == 2 && i < holders[0].size(); ++i) {
    const auto [first, second] = std::minmax(holders[0][i], holders[1][i]);
    tables.push_back({parameters, {first, second}});
  }
  return tables;
}

StageReplicas ReplicasOf(const Placing& placing, int stage, const std::vector<TiedTable>& tied) {
  StageReplicas replicas{DataParallelGroup(), {}};
  for (const TiedTable& table : tied) {
    if (stage == table.stages[0] || stage == table.stages[1]) replicas.tied = table;
  }
  if (placing.placement == pipeline::Placement::kBidirectional) {
    const int mirror = placing.stages - 1 - stage;
    replicas.group = CopiesGroup({std::min(stage, mirror), std::max(stage, mirror)});
  }
  return replicas;
}

// One stage's program.
class StageLowering {
 public:
  StageLowering(const Plan& plan, const hw::ProfileCostModel& costs, const pipeline::Order& order,
                int stage, const std::vector<VirtualStage>& virtual_stages,
                const std::vector<TiedTable>& tied, ir::Schedule& schedule)
      : order_(order),
        stage_(stage),
        virtual_stages_(virtual_stages),
        program_(stage),
        data_parallel_(plan, costs, ReplicasOf(PlacingOf(order), stage, tied), Chunks(), program_,
                       schedule),
        writer_(program_, PlacingOf(order), stage, order.micro_batches, data_parallel_) {
    if (plan.synchronous_messages()) writer_.WaitForSends();
  }

  ir::Program Lower() && {
    program_.Reserve(CountOperations());
    const std::vector<pipeline::Slot>& slots = order_.slots[stage_];
    data_parallel_.Begin(slots);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].with_next) {
        writer_.WriteShared({slots[i], WorkOf(slots[i])}, {slots[i + 1], WorkOf(slots[i + 1])});
        data_parallel_.AfterSlot(slots[i]);
        ++i;
      } else {
        writer_.Write(slots[i], WorkOf(slots[i]));
      }
      data_parallel_.AfterSlot(slots[i]);
    }
    data_parallel_.End();
    return std::move(program_).Take();
  }

 private:
  const VirtualStage& WorkOf(const pipeline::Slot& slot) const {
    return virtual_stages_[VirtualStageOf(order_, stage_, slot)];
  }

  std::vector<const VirtualStage*> Chunks() const {
    std::vector<const VirtualStage*> chunks;
    chunks.reserve(order_.chunks);
    for (int chunk = 0; chunk < order_.chunks; ++chunk) {
      chunks.push_back(&virtual_stages_[PlacingOf(order_).VirtualStageOf({stage_, chunk})]);
    }
    return chunks;
  }

  // Beside the slots: a gather and a reduction per chunk (or bucket), the sum of a tied table's
  // gradients, gradient norm and optimizer.
  std::size_t CountOperations() const {
    std::size_t count = 2 * static_cast<std::size_t>(order_.chunks) + 3;
    for (const pipeline::Slot& slot : order_.slots[stage_]) {
      for (const Piece& piece : WorkOf(slot).PiecesOf(slot.kind)) count += piece.block->ops.size();
      count += 2;  // receive and send
    }
    return count;
  }

  const pipeline::Order& order_;
  int stage_;
  const std::vector<VirtualStage>& virtual_stages_;
  ProgramBuilder program_;
  DataParallelWriter data_parallel_;
  SlotWriter writer_;
};

}  // namespace

void LowerPipeline(const Plan& plan, const hw::ProfileCostModel& costs,
                   const pipeline::Order& order, const std::vector<VirtualStage>& virtual_stages,
                   ir::Schedule& schedule) {
  schedule.programs.clear();
  const std::vector<TiedTable> tied = FindTiedTables(PlacingOf(order), virtual_stages);
  for (int s = 0; s < order.stages; ++s) {
    schedule.programs.push_back(
        StageLowering(plan, costs, order, s, virtual_stages, tied, schedule).Lower());
  }
}

}  // namespace optimus::step
