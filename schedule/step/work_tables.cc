#include "schedule/step/work_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedule/ir/critical_path.h"
#include "schedule/step/layout.h"

namespace optimus::step {
namespace {

template <class T>
std::int32_t InternIn(std::vector<T>& table, const T& entry) {
  // The tables of a whole step have tens of entries, and are searched once per distinct block.
  const auto found = std::find(table.begin(), table.end(), entry);
  if (found != table.end()) return static_cast<std::int32_t>(found - table.begin());
  table.push_back(entry);
  return static_cast<std::int32_t>(table.size()) - 1;
}

Picoseconds WorkTime(const LoweredOp& op, const ir::Schedule& schedule, const CostModel& costs) {
  if (op.kind == ir::OperationKind::kKernel) return costs.KernelTime(schedule.kernels[op.work]);
  const ir::Collective& collective = schedule.collectives[op.work];
  const GroupShape shape = ir::ShapeOf(schedule, schedule.groups[collective.group]);
  return UncontendedTime(costs, costs.CollectiveCost(collective.work, shape));
}

// An item of `module` in front of or inside `llm`, as blocks.
struct BlockMaker {
  ItemKind kind;
  const Module& module;
  const Module& llm;

  models::Block Forward() const {
    switch (kind) {
      case ItemKind::kLayer:
        return models::LayerForward(module.config, module.slice);
      case ItemKind::kProjector:
        return models::ProjectorForward(module.config, llm.config.hidden_size(), module.whole);
      case ItemKind::kEmbedding:
        return models::EmbeddingForward(module.config, module.whole);
      case ItemKind::kHead:
        break;
    }
    return models::HeadForward(module.config, module.whole);
  }

  models::Block Backward(models::Gradients gradients) const {
    switch (kind) {
      case ItemKind::kLayer:
        return models::LayerBackward(module.config, module.slice, gradients);
      case ItemKind::kProjector:
        return models::ProjectorBackward(module.config, llm.config.hidden_size(), module.whole,
                                         gradients);
      case ItemKind::kEmbedding:
        return models::EmbeddingBackward(module.config, module.whole, gradients);
      case ItemKind::kHead:
        break;
    }
    return models::HeadBackward(module.config, module.whole, gradients);
  }
};

// The parts of a backward have no work of their own, so that they add nothing to the tables.
ItemBlocks LowerItem(const BlockMaker& item, ir::Schedule& schedule) {
  using models::Gradients;
  ItemBlocks blocks;
  blocks.forward = Lower(item.Forward(), schedule);
  if (item.module.frozen && item.kind == ItemKind::kLayer) return blocks;
  // Nothing behind a frozen encoder's output wants its gradient.
  const bool weights_alone = item.module.frozen && item.kind == ItemKind::kProjector;
  const Gradients wanted = weights_alone ? Gradients::kWeights : Gradients::kBoth;
  blocks.backward = Lower(item.Backward(wanted), schedule);
  if (!weights_alone) blocks.backward_data = Lower(item.Backward(Gradients::kData), schedule);
  blocks.backward_weight = Lower(item.Backward(Gradients::kWeights), schedule);
  return blocks;
}

}  // namespace

std::int32_t Intern(std::vector<Kernel>& table, const Kernel& kernel) {
  return InternIn(table, kernel);
}
std::int32_t Intern(std::vector<ir::Collective>& table, const ir::Collective& collective) {
  return InternIn(table, collective);
}
std::int32_t Intern(std::vector<ir::Transfer>& table, const ir::Transfer& transfer) {
  return InternIn(table, transfer);
}
std::int32_t Intern(std::vector<ir::Group>& table, const ir::Group& group) {
  return InternIn(table, group);
}

ir::Group TensorParallelGroup() { return {.name = "tp", .over_tp = true}; }
ir::Group DataParallelGroup() { return {.name = "dp", .over_dp = true}; }
ir::Group ModelGroup() { return {.name = "model", .over_pp = true, .over_tp = true}; }
ir::Group TiedGroup(std::array<std::int32_t, 2> stages) {
  return {
      .name = absl::StrCat("tied ", stages[0], "+", stages[1]), .over_pp = true, .pp_pair = stages};
}
ir::Group CopiesGroup(std::array<std::int32_t, 2> stages) {
  return {.name = absl::StrCat("dp ", stages[0], "+", stages[1]),
          .over_dp = true,
          .over_pp = true,
          .pp_pair = stages};
}

LoweredBlock Lower(const models::Block& block, ir::Schedule& schedule, const ir::Group& group) {
  LoweredBlock lowered;
  lowered.output = block.output;
  lowered.ops.reserve(block.ops.size());
  for (const models::BlockOp& op : block.ops) {
    LoweredOp out;
    out.phase = op.phase;
    out.needs_input = op.needs_input;
    out.after = op.after;
    if (op.is_collective) {
      out.kind = ir::OperationKind::kCollective;
      out.stream = ir::Stream::kTensorParallel;
      const std::int32_t index = Intern(schedule.groups, group);
      out.work = Intern(schedule.collectives, ir::Collective{op.collective, index});
    } else {
      out.work = Intern(schedule.kernels, op.kernel);
    }
    lowered.ops.push_back(std::move(out));
  }
  return lowered;
}

BlockTable::BlockTable(const Stack& stack, ir::Schedule& schedule) {
  const Module& llm = stack.modules[0];
  for (std::size_t m = 0; m < stack.modules.size(); ++m) {
    ModuleBlocks blocks;
    blocks.layer = LowerItem({ItemKind::kLayer, stack.modules[m], llm}, schedule);
    if (m > 0) {
      blocks.projector = LowerItem({ItemKind::kProjector, stack.modules[m], llm}, schedule);
    }
    modules_.push_back(std::move(blocks));
  }
  embedding_ = LowerItem({ItemKind::kEmbedding, llm, llm}, schedule);
  head_ = LowerItem({ItemKind::kHead, llm, llm}, schedule);
}

const ItemBlocks& BlockTable::Of(const Item& item) const {
  switch (item.kind) {
    case ItemKind::kLayer:
      return modules_[item.module].layer;
    case ItemKind::kProjector:
      return modules_[item.module].projector;
    case ItemKind::kEmbedding:
      return embedding_;
    case ItemKind::kHead:
      break;
  }
  return head_;
}

Picoseconds BlockTime(const LoweredBlock& block, const ir::Schedule& schedule,
                      const CostModel& costs) {
  std::vector<Picoseconds> ends;
  Picoseconds compute_end, tensor_end;
  for (const LoweredOp& op : block.ops) {
    Picoseconds& stream_end = op.stream == ir::Stream::kCompute ? compute_end : tensor_end;
    Picoseconds start = stream_end;
    for (const int before : op.after) start = std::max(start, ends[before]);
    stream_end = start + WorkTime(op, schedule, costs);
    ends.push_back(stream_end);
  }
  return std::max(compute_end, tensor_end);
}

std::vector<Picoseconds> LayerTimes(const Stack& stack, const BlockTable& blocks,
                                    const ir::Schedule& schedule, const CostModel& costs) {
  std::vector<Picoseconds> result;
  for (const LayerItems& layer : ItemsByLayer(stack)) {
    Picoseconds time;
    for (int i = layer.first; i < layer.last; ++i) {
      const Item& item = stack.items[i];
      const ItemBlocks& work = blocks.Of(item);
      const int passes = item.kind == ItemKind::kLayer ? stack.modules[item.module].slices : 1;
      time += passes * (BlockTime(work.forward, schedule, costs) +
                        BlockTime(work.backward, schedule, costs));
    }
    result.push_back(time);
  }
  return result;
}

}  // namespace optimus::step
