#include "schedule/step/virtual_stages.h"

#include <algorithm>
#include <utility>

#include "schedule/step/parameters.h"

namespace optimus::step {
namespace {

// End of the run of layers of one module that begins at `first`; any other item is a run of one.
int RunEnd(const Stack& stack, int first, int end) {
  const Item& item = stack.items[first];
  int last = first + 1;
  while (item.kind == ItemKind::kLayer && last < end &&
         stack.items[last].kind == ItemKind::kLayer && stack.items[last].module == item.module) {
    ++last;
  }
  return last;
}

// The forward order of (item, slice); backward is its reverse.
struct Pass {
  const Item* item = nullptr;
  int slice = 0;
};
std::vector<Pass> PassesOf(const Stack& stack, int begin, int end) {
  std::vector<Pass> passes;
  for (int first = begin; first < end;) {
    const int last = RunEnd(stack, first, end);
    const Item& item = stack.items[first];
    const int slices = item.kind == ItemKind::kLayer ? stack.modules[item.module].slices : 1;
    for (int slice = 0; slice < slices; ++slice) {
      for (int i = first; i < last; ++i) passes.push_back({&stack.items[i], slice});
    }
    first = last;
  }
  return passes;
}

std::vector<bool> TrainedBefore(const Stack& stack) {
  std::vector<bool> before(stack.items.size() + 1, false);
  for (std::size_t i = 0; i < stack.items.size(); ++i) {
    before[i + 1] = before[i] || IsTrained(stack, stack.items[i]);
  }
  return before;
}

// Messages over the boundary behind virtual stage v: forward, and backward if anything in front of
// it is trained.
void Connect(std::vector<VirtualStage>& stages, std::size_t v, std::int32_t forward,
             std::int32_t backward) {
  stages[v].edges.forward_out = stages[v + 1].edges.forward_in = forward;
  stages[v].edges.backward_in = stages[v + 1].edges.backward_out = backward;
}

void ConnectAll(const Stack& stack, const ItemRanges& ranges, ir::Schedule& schedule,
                std::vector<VirtualStage>& stages) {
  if (schedule.world.pp == 1) return;
  const std::vector<bool> trained = TrainedBefore(stack);
  for (std::size_t v = 0; v + 1 < stages.size(); ++v) {
    const Bytes bytes = BoundaryBytes(stack, stack.items[ranges[v + 1] - 1]);
    const std::int32_t forward =
        Intern(schedule.transfers, ir::Transfer{"activations", bytes, Picoseconds(0)});
    std::int32_t backward = -1;
    if (trained[ranges[v + 1]]) {
      backward = Intern(schedule.transfers, ir::Transfer{"gradients", bytes, Picoseconds(0)});
    }
    Connect(stages, v, forward, backward);
  }
}

LoweredOp FixedKernel(const char* name, double milliseconds, Phase phase, ir::Schedule& schedule) {
  Kernel kernel;
  kernel.kind = KernelKind::kFixed;
  kernel.name = name;
  kernel.fixed = FromSeconds(milliseconds * 1e-3);
  LoweredOp op;
  op.phase = phase;
  op.work = Intern(schedule.kernels, kernel);
  return op;
}

}  // namespace

ir::Tag TagOf(const Item& item, int slice) {
  ir::Tag tag;
  tag.module = static_cast<std::int16_t>(item.module);
  switch (item.kind) {
    case ItemKind::kLayer:
      tag.layer = static_cast<std::int16_t>(item.layer);
      if (item.module > 0) tag.slice = static_cast<std::int16_t>(slice);
      break;
    case ItemKind::kProjector:
      tag.layer = ir::kProjectorLayer;
      break;
    case ItemKind::kEmbedding:
      tag.layer = ir::kEmbeddingLayer;
      break;
    case ItemKind::kHead:
      tag.layer = ir::kHeadLayer;
      break;
  }
  return tag;
}

std::vector<VirtualStage> VirtualStagesOf(const Stack& stack, const ItemRanges& ranges,
                                          const BlockTable& blocks, ir::Schedule& schedule) {
  std::vector<VirtualStage> stages(ranges.size() - 1);
  for (std::size_t v = 0; v < stages.size(); ++v) {
    std::vector<Pass> passes = PassesOf(stack, ranges[v], ranges[v + 1]);
    for (const Pass& pass : passes) {
      stages[v].forward.push_back({&blocks.Of(*pass.item).forward, TagOf(*pass.item, pass.slice)});
    }
    std::reverse(passes.begin(), passes.end());
    for (const Pass& pass : passes) {
      stages[v].backward.push_back(
          {&blocks.Of(*pass.item).backward, TagOf(*pass.item, pass.slice)});
    }
  }
  const std::vector<ChunkParameters> parameters =
      CountChunkParameters(stack, ranges, schedule.world.pp);
  for (std::size_t v = 0; v < stages.size(); ++v) {
    stages[v].trained_parameters = parameters[v].trained;
  }
  ConnectAll(stack, ranges, schedule, stages);
  return stages;
}

ProfiledBlocks BlocksOf(const ProfiledStages& times, int model_chunks, ir::Schedule& schedule) {
  ProfiledBlocks blocks;
  blocks.forward.ops.push_back(
      FixedKernel("forward", times.forward_ms() / model_chunks, Phase::kForward, schedule));
  blocks.backward.ops.push_back(
      FixedKernel("backward", times.backward_ms() / model_chunks, Phase::kBackward, schedule));
  if (times.weight_ms() > 0) {
    blocks.backward.ops.push_back(FixedKernel("weight_gradient", times.weight_ms() / model_chunks,
                                              Phase::kWeightGradient, schedule));
  }
  for (LoweredBlock* block : {&blocks.forward, &blocks.backward}) {
    block->ops.front().needs_input = true;
    block->output = static_cast<int>(block->ops.size()) - 1;
  }
  return blocks;
}

std::vector<VirtualStage> VirtualStagesOf(const ProfiledStages& times, const ProfiledBlocks& blocks,
                                          ir::Schedule& schedule) {
  std::vector<VirtualStage> stages(schedule.modules[0].layers);
  for (std::size_t v = 0; v < stages.size(); ++v) {
    ir::Tag tag;
    tag.module = ir::kLlmModule;
    tag.layer = static_cast<std::int16_t>(v);
    stages[v].forward.push_back({&blocks.forward, tag});
    stages[v].backward.push_back({&blocks.backward, tag});
  }
  if (schedule.world.pp == 1) return stages;
  // Without bytes and without a measured time a message is free.
  const Picoseconds fixed = FromSeconds(times.communication_ms() * 1e-3);
  const std::int32_t forward = Intern(schedule.transfers, {"activations", Bytes(0), fixed});
  const std::int32_t backward = Intern(schedule.transfers, {"gradients", Bytes(0), fixed});
  for (std::size_t v = 0; v + 1 < stages.size(); ++v) Connect(stages, v, forward, backward);
  return stages;
}

}  // namespace optimus::step
