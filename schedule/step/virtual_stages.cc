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

void ConnectAll(const Stack& stack, const ItemRanges& ranges, const Placing& placing,
                ir::Schedule& schedule, std::vector<VirtualStage>& stages) {
  const std::vector<bool> trained = TrainedBefore(stack);
  for (std::size_t v = 0; v + 1 < stages.size(); ++v) {
    if (placing.StaysBehind(static_cast<int>(v))) continue;
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

LoweredOp FixedKernel(const char* name, Picoseconds duration, Phase phase, ir::Schedule& schedule) {
  Kernel kernel;
  kernel.kind = KernelKind::kFixed;
  kernel.name = name;
  kernel.fixed = duration;
  LoweredOp op;
  op.phase = phase;
  op.work = Intern(schedule.kernels, kernel);
  return op;
}

// One kernel after the other.
LoweredBlock BlockOf(std::vector<LoweredOp> ops) {
  LoweredBlock block;
  block.ops = std::move(ops);
  block.output = static_cast<int>(block.ops.size()) - 1;
  if (!block.ops.empty()) block.ops.front().needs_input = true;
  return block;
}

// Of one chunk.
struct ProfiledTimes {
  Picoseconds forward, backward, weight;
  Picoseconds sum() const { return forward + backward + weight; }
};

Picoseconds Part(double milliseconds, int parts) {
  return FromSeconds(milliseconds / parts * 1e-3);
}

// The same proportions in `together` instead of one after the other.
ProfiledTimes Shared(const ProfiledTimes& times, Picoseconds together) {
  const double scale =
      static_cast<double>(together.value()) / static_cast<double>(times.sum().value());
  const auto scaled = [scale](Picoseconds time) {
    return Picoseconds(static_cast<std::int64_t>(static_cast<double>(time.value()) * scale));
  };
  ProfiledTimes shared{scaled(times.forward), Picoseconds(0), scaled(times.weight)};
  shared.backward = together - shared.forward - shared.weight;
  return shared;
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

const std::vector<Piece>& VirtualStage::PiecesOf(pipeline::SlotKind kind) const {
  switch (kind) {
    case pipeline::SlotKind::kForward:
      return forward;
    case pipeline::SlotKind::kBackwardData:
      return backward_data;
    case pipeline::SlotKind::kBackwardWeight:
      return backward_weight;
    case pipeline::SlotKind::kBackward:
      break;
  }
  return backward;
}

std::vector<VirtualStage> VirtualStagesOf(const Stack& stack, const ItemRanges& ranges,
                                          const Placing& placing, const BlockTable& blocks,
                                          ir::Schedule& schedule) {
  std::vector<VirtualStage> stages(ranges.size() - 1);
  for (std::size_t v = 0; v < stages.size(); ++v) {
    std::vector<Pass> passes = PassesOf(stack, ranges[v], ranges[v + 1]);
    for (const Pass& pass : passes) {
      stages[v].forward.push_back({&blocks.Of(*pass.item).forward, TagOf(*pass.item, pass.slice)});
    }
    std::reverse(passes.begin(), passes.end());
    for (const Pass& pass : passes) {
      const ItemBlocks& work = blocks.Of(*pass.item);
      const ir::Tag tag = TagOf(*pass.item, pass.slice);
      stages[v].backward.push_back({&work.backward, tag});
      stages[v].backward_data.push_back({&work.backward_data, tag});
      stages[v].backward_weight.push_back({&work.backward_weight, tag});
    }
  }
  const bool tied_copy = HasTiedCopy(stack, ranges, placing);
  for (std::size_t v = 0; v < stages.size(); ++v) {
    for (int i = ranges[v]; i < ranges[v + 1]; ++i) {
      const std::int64_t trained = CountRange(stack, i, i + 1, tied_copy).trained;
      stages[v].items.push_back({TagOf(stack.items[i], 0), trained});
      stages[v].trained_parameters += trained;
      if (tied_copy) stages[v].tied_parameters += TiedParameters(stack, stack.items[i]);
    }
  }
  ConnectAll(stack, ranges, placing, schedule, stages);
  return stages;
}

ProfiledBlocks BlocksOf(const ProfiledStages& times, int parts, ir::Schedule& schedule) {
  const ProfiledTimes own{Part(times.forward_ms(), parts), Part(times.backward_ms(), parts),
                          Part(times.weight_ms(), parts)};
  const auto forward = [&](const char* name, const ProfiledTimes& t) {
    return FixedKernel(name, t.forward, Phase::kForward, schedule);
  };
  const auto backward = [&](const char* name, const ProfiledTimes& t) {
    return FixedKernel(name, t.backward, Phase::kBackward, schedule);
  };
  const auto weight = [&](const char* name, const ProfiledTimes& t) -> std::vector<LoweredOp> {
    if (times.weight_ms() == 0) return {};
    return {FixedKernel(name, t.weight, Phase::kWeightGradient, schedule)};
  };
  const auto whole = [](LoweredOp data, std::vector<LoweredOp> weights) {
    weights.insert(weights.begin(), std::move(data));
    return BlockOf(std::move(weights));
  };
  ProfiledBlocks blocks;
  blocks.forward = BlockOf({forward("forward", own)});
  blocks.backward_data = BlockOf({backward("backward", own)});
  blocks.backward_weight = BlockOf(weight("weight_gradient", own));
  blocks.backward = whole(backward("backward", own), weight("weight_gradient", own));
  const bool together = times.together_ms() > 0;
  const ProfiledTimes shared = together ? Shared(own, Part(times.together_ms(), parts)) : own;
  blocks.shared_forward = BlockOf({forward(together ? "shared_forward" : "forward", shared)});
  blocks.shared_backward =
      whole(backward(together ? "shared_backward" : "backward", shared),
            weight(together ? "shared_weight_gradient" : "weight_gradient", shared));
  return blocks;
}

std::vector<VirtualStage> VirtualStagesOf(const ProfiledStages& times, const Placing& placing,
                                          const ProfiledBlocks& blocks, ir::Schedule& schedule) {
  std::vector<VirtualStage> stages(placing.virtual_stages());
  for (std::size_t v = 0; v < stages.size(); ++v) {
    ir::Tag tag;
    tag.module = ir::kLlmModule;
    tag.layer = static_cast<std::int16_t>(v);
    stages[v].forward.push_back({&blocks.forward, tag});
    stages[v].backward.push_back({&blocks.backward, tag});
    stages[v].backward_data.push_back({&blocks.backward_data, tag});
    stages[v].backward_weight.push_back({&blocks.backward_weight, tag});
    stages[v].shared_forward.push_back({&blocks.shared_forward, tag});
    stages[v].shared_backward.push_back({&blocks.shared_backward, tag});
  }
  // Without bytes and without a measured time a message is free.
  const Picoseconds fixed = FromSeconds(times.communication_ms() * 1e-3);
  for (std::size_t v = 0; v + 1 < stages.size(); ++v) {
    if (placing.StaysBehind(static_cast<int>(v))) continue;
    const std::int32_t forward = Intern(schedule.transfers, {"activations", Bytes(0), fixed});
    const std::int32_t backward = Intern(schedule.transfers, {"gradients", Bytes(0), fixed});
    Connect(stages, v, forward, backward);
  }
  return stages;
}

}  // namespace optimus::step
