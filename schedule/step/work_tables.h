#pragma once
// Every distinct block of the model, made once: its kernels and collectives interned in the
// Schedule's tables, so that emitting a layer for one more micro-batch only copies indices.

#include <array>
#include <cstdint>
#include <vector>

#include "base/cost_model.h"
#include "models/block.h"
#include "schedule/ir/schedule.h"
#include "schedule/step/stack.h"

namespace optimus::step {

// Index of the equal entry of the table; appends it if there is none.
std::int32_t Intern(std::vector<Kernel>& table, const Kernel& kernel);
std::int32_t Intern(std::vector<ir::Collective>& table, const ir::Collective& collective);
std::int32_t Intern(std::vector<ir::Transfer>& table, const ir::Transfer& transfer);
std::int32_t Intern(std::vector<ir::Group>& table, const ir::Group& group);

// Groups used by a step, by name: "tp", "dp", "model" (the ranks of one replica).
ir::Group TensorParallelGroup();
ir::Group DataParallelGroup();
ir::Group ModelGroup();
// Those over two stages a < b: "tied a+b" (the two ranks of a replica that hold the same part of a
// tied table), "dp a+b" (the data-parallel ranks of stages that hold copies of the same layers).
ir::Group TiedGroup(std::array<std::int32_t, 2> stages);
ir::Group CopiesGroup(std::array<std::int32_t, 2> stages);

// A models::Block whose work is interned.
struct LoweredOp {
  ir::OperationKind kind = ir::OperationKind::kKernel;
  ir::Stream stream = ir::Stream::kCompute;
  Phase phase = Phase::kForward;
  std::int32_t work = -1;
  bool needs_input = false;
  std::vector<int> after;
};
struct LoweredBlock {
  std::vector<LoweredOp> ops;
  int output = -1;  // as in models::Block
};
// Collectives are over `group`: an encoder may have a tensor parallelism of its own.
LoweredBlock Lower(const models::Block& block, ir::Schedule& schedule,
                   const ir::Group& group = TensorParallelGroup());

// One item's work. A layer's blocks see one slice, the others the whole micro-batch.
struct ItemBlocks {
  LoweredBlock forward;
  LoweredBlock backward;                        // empty for a layer of a frozen encoder
  LoweredBlock backward_data, backward_weight;  // the two parts of `backward`
};

class BlockTable {
 public:
  // Interns into `schedule`, whose world must be set.
  BlockTable(const Stack& stack, ir::Schedule& schedule);
  const ItemBlocks& Of(const Item& item) const;

 private:
  struct ModuleBlocks {
    ItemBlocks layer, projector;
  };
  std::vector<ModuleBlocks> modules_;
  ItemBlocks embedding_, head_;
};

// Time of a block alone: its two streams run in issue order, `after` edges are kept, nothing else
// uses the links.
Picoseconds BlockTime(const LoweredBlock& block, const ir::Schedule& schedule,
                      const CostModel& costs);

// Forward + backward (with recomputation) of every transformer layer and what rides along with it,
// for one micro-batch: the weights of the balanced layout.
std::vector<Picoseconds> LayerTimes(const Stack& stack, const BlockTable& blocks,
                                    const ir::Schedule& schedule, const CostModel& costs);

}  // namespace optimus::step
