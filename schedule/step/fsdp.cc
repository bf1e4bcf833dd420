#include "schedule/step/fsdp.h"

#include <algorithm>
#include <utility>

#include "schedule/step/data_parallel.h"
#include "schedule/step/memory.h"
#include "schedule/step/parameters.h"
#include "schedule/step/program_builder.h"
#include "schedule/step/virtual_stages.h"

namespace optimus::step {
namespace {

constexpr int kBf16Bytes = 2;
constexpr int kFp32Bytes = 4;
constexpr int kOptimizerStateBytes = 12;  // fp32 parameter, momentum, variance
constexpr int kGradientNormBytes = 8;     // one fp64 sum of squares

int ReducedBytes(const Plan& plan) {
  return plan.fsdp().reduce_in_fp32() ? kFp32Bytes : kBf16Bytes;
}

bool IsLayer(const Item& item) { return item.kind == ItemKind::kLayer; }

// In the order of the forward.
std::vector<const Item*> LayersOf(const Stack& stack) {
  std::vector<const Item*> layers;
  for (const Item& item : stack.items) {
    if (IsLayer(item)) layers.push_back(&item);
  }
  return layers;
}

std::vector<const Item*> TrainedLayersOf(const Stack& stack) {
  std::vector<const Item*> layers;
  for (const Item* layer : LayersOf(stack)) {
    if (IsTrained(stack, *layer)) layers.push_back(layer);
  }
  return layers;
}

std::int64_t RootParameters(const Stack& stack) {
  std::int64_t sum = 0;
  for (const Item& item : stack.items) {
    if (!IsLayer(item)) sum += ItemParameters(stack, item);
  }
  return sum;
}

std::int64_t TrainedParameters(const Stack& stack) {
  std::int64_t sum = 0;
  for (const Item& item : stack.items) {
    if (IsTrained(stack, item)) sum += ItemParameters(stack, item);
  }
  return sum;
}

// The program of every GPU.
class FsdpWriter {
 public:
  FsdpWriter(const Plan& plan, const Stack& stack, const BlockTable& blocks,
             const hw::ProfileCostModel& costs, ir::Schedule& schedule)
      : plan_(plan),
        stack_(stack),
        blocks_(blocks),
        costs_(costs),
        schedule_(schedule),
        program_(/*stage=*/0) {}

  ir::Program Write() && {
    for (micro_batch_ = 0; micro_batch_ < schedule_.micro_batches; ++micro_batch_) {
      Forward();
      Backward();
    }
    End();
    return std::move(program_).Take();
  }

 private:
  // The layers of one direction, and how far their gathers are.
  struct Pass {
    std::vector<const Item*> layers;          // in the order in which they run
    std::int64_t begin = -1;                  // nothing is gathered before this operation has ended
    std::vector<std::int64_t> gathers, ends;  // operations, by layer
  };

  bool sharded() const { return plan_.data_parallel() > 1; }
  void Forward();
  void Backward();
  void RunLayer(Pass& pass, bool forward);
  void GatherUpTo(Pass& pass, std::size_t layer);
  void Run(const Item& item, bool forward, std::int64_t gather);
  void RunBlock(const LoweredBlock& block, ir::Tag tag, std::int64_t gather);
  std::int64_t Gather(const Item* layer, std::int64_t after);
  void Reduce(const Item* layer);
  std::uint32_t Communicate(const CollectiveWork& work, ir::Tag tag, std::int64_t after);
  void End();
  ir::Tag UnitTag(const Item* layer, Phase phase) const;
  // `layer` null: the root unit.
  std::int64_t UnitParameters(const Item* layer) const {
    return layer == nullptr ? RootParameters(stack_) : ItemParameters(stack_, *layer);
  }

  const Plan& plan_;
  const Stack& stack_;
  const BlockTable& blocks_;
  const hw::ProfileCostModel& costs_;
  ir::Schedule& schedule_;
  ProgramBuilder program_;
  std::int32_t micro_batch_ = 0;
  std::int64_t last_reduce_ = -1;
};

void FsdpWriter::Forward() {
  Pass pass{LayersOf(stack_), program_.last_compute(), {}, {}};
  std::int64_t root = Gather(nullptr, pass.begin);
  for (const Item& item : stack_.items) {
    if (IsLayer(item)) {
      RunLayer(pass, /*forward=*/true);
    } else {
      Run(item, /*forward=*/true, std::exchange(root, -1));
    }
  }
}

void FsdpWriter::Backward() {
  Pass pass{TrainedLayersOf(stack_), program_.last_compute(), {}, {}};
  std::reverse(pass.layers.begin(), pass.layers.end());
  // The backward of the root comes first (the head's) and prefetches.
  if (plan_.fsdp().prefetch() > 0) GatherUpTo(pass, plan_.fsdp().prefetch() - 1);
  const auto first_of_root = std::find_if_not(stack_.items.begin(), stack_.items.end(), IsLayer);
  for (auto item = stack_.items.rbegin(); item != stack_.items.rend(); ++item) {
    if (!IsTrained(stack_, *item)) continue;
    if (IsLayer(*item)) {
      RunLayer(pass, /*forward=*/false);
      continue;
    }
    Run(*item, /*forward=*/false, -1);
    // Its gradients are complete with the last contribution.
    if (&*item == &*first_of_root) Reduce(nullptr);
  }
}

void FsdpWriter::RunLayer(Pass& pass, bool forward) {
  const std::size_t k = pass.ends.size();
  GatherUpTo(pass, k + plan_.fsdp().prefetch());
  Run(*pass.layers[k], forward, pass.gathers[k]);
  pass.ends.push_back(program_.last_compute());
  if (!forward) Reduce(pass.layers[k]);
}

void FsdpWriter::GatherUpTo(Pass& pass, std::size_t layer) {
  const std::size_t kept = plan_.fsdp().prefetch() + 1;
  for (std::size_t k = pass.gathers.size(); k <= layer && k < pass.layers.size(); ++k) {
    pass.gathers.push_back(Gather(pass.layers[k], k < kept ? pass.begin : pass.ends[k - kept]));
  }
}

void FsdpWriter::Run(const Item& item, bool forward, std::int64_t gather) {
  const ItemBlocks& work = blocks_.Of(item);
  const int slices = IsLayer(item) ? stack_.modules[item.module].slices : 1;
  for (int i = 0; i < slices; ++i) {
    const int slice = forward ? i : slices - 1 - i;
    RunBlock(forward ? work.forward : work.backward, TagOf(item, slice), std::exchange(gather, -1));
  }
}

// One tensor-parallel rank: there are kernels only, in one order.
void FsdpWriter::RunBlock(const LoweredBlock& block, ir::Tag tag, std::int64_t gather) {
  tag.chunk = 0;
  tag.micro_batch = micro_batch_;
  for (const LoweredOp& lowered : block.ops) {
    ir::Operation op;
    op.work = lowered.work;
    op.tag = tag;
    op.tag.phase = lowered.phase;
    const auto before = static_cast<std::uint32_t>(gather);
    program_.Append(op, {&before, std::exchange(gather, -1) >= 0 ? 1U : 0U});
  }
}

ir::Tag FsdpWriter::UnitTag(const Item* layer, Phase phase) const {
  ir::Tag tag;
  if (layer != nullptr) {
    tag.module = static_cast<std::int16_t>(layer->module);
    tag.layer = static_cast<std::int16_t>(layer->layer);
  }
  tag.micro_batch = micro_batch_;
  tag.phase = phase;
  return tag;
}

std::int64_t FsdpWriter::Gather(const Item* layer, std::int64_t after) {
  if (!sharded()) return -1;
  const CollectiveWork work = {CollectiveKind::kAllGather, "parameter_all_gather",
                               Bytes(UnitParameters(layer) * kBf16Bytes)};
  return Communicate(work, UnitTag(layer, Phase::kParameterSync), after);
}

void FsdpWriter::Reduce(const Item* layer) {
  if (!sharded()) return;
  const CollectiveWork work = {CollectiveKind::kReduceScatter, "gradient_reduce_scatter",
                               Bytes(UnitParameters(layer) * ReducedBytes(plan_))};
  last_reduce_ = Communicate(work, UnitTag(layer, Phase::kGradientSync), program_.last_compute());
}

std::uint32_t FsdpWriter::Communicate(const CollectiveWork& work, ir::Tag tag, std::int64_t after) {
  ir::Operation op;
  op.kind = ir::OperationKind::kCollective;
  op.stream = ir::Stream::kDataParallel;
  op.tag = tag;
  const std::int32_t group = Intern(schedule_.groups, DataParallelGroup());
  op.work = Intern(schedule_.collectives, ir::Collective{work, group});
  const auto before = static_cast<std::uint32_t>(after);
  return program_.Append(op, {&before, after >= 0 ? 1U : 0U});
}

// Every GPU has another part of the gradient: its norm is summed over all of them.
void FsdpWriter::End() {
  std::vector<std::uint32_t> dependencies;
  if (sharded()) {
    micro_batch_ = -1;
    const CollectiveWork norm = {CollectiveKind::kAllReduce, "grad_norm",
                                 Bytes(kGradientNormBytes)};
    dependencies.push_back(static_cast<std::uint32_t>(last_reduce_));
    dependencies.push_back(
        Communicate(norm, UnitTag(nullptr, Phase::kGradientSync), program_.last_compute()));
  }
  ir::Operation op;
  op.tag.phase = Phase::kOptimizer;
  op.work = Intern(schedule_.kernels, OptimizerKernel(plan_, costs_, TrainedParameters(stack_)));
  program_.Append(op, dependencies);
}

// The most parameters of `count` layers in a row.
std::int64_t LargestRun(const Stack& stack, const std::vector<const Item*>& layers,
                        std::size_t count) {
  std::int64_t run = 0;
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    run += ItemParameters(stack, *layers[i]);
    if (i >= count) run -= ItemParameters(stack, *layers[i - count]);
    largest = std::max(largest, run);
  }
  return largest;
}

}  // namespace

double FsdpCollectivesPerMicroBatch(const Plan& plan, const Stack& stack) {
  if (plan.data_parallel() == 1) return 0;
  double count = 2;  // of the root
  for (const Item* layer : LayersOf(stack)) count += IsTrained(stack, *layer) ? 3 : 1;
  return count;
}

void LowerFsdp(const Plan& plan, const Stack& stack, const BlockTable& blocks,
               const hw::ProfileCostModel& costs, ir::Schedule& schedule) {
  schedule.programs.clear();
  schedule.programs.push_back(FsdpWriter(plan, stack, blocks, costs, schedule).Write());
}

StageMemory FsdpMemory(const Plan& plan, const Stack& stack) {
  const auto shard = [&plan](std::int64_t bytes) {
    return Bytes((bytes + plan.data_parallel() - 1) / plan.data_parallel());
  };
  const auto items = static_cast<int>(stack.items.size());
  const std::size_t kept = plan.fsdp().prefetch() + 1;
  const std::int64_t root = RootParameters(stack);
  const std::int64_t trained = TrainedParameters(stack);
  std::int64_t all = 0;
  for (const Item& item : stack.items) all += ItemParameters(stack, item);
  StageMemory memory;
  memory.parameters = Bytes((root + LargestRun(stack, LayersOf(stack), kept)) * kBf16Bytes) +
                      shard((all - trained) * kBf16Bytes);
  memory.gradients = shard(trained * kFp32Bytes);
  memory.optimizer_state = shard(trained * kOptimizerStateBytes);
  memory.activations = ActivationBytes(stack, 0, items);
  memory.workspace = RecomputeWorkspace(stack, 0, items) + Bytes(root * kBf16Bytes) +
                     Bytes(LargestRun(stack, TrainedLayersOf(stack), kept) * ReducedBytes(plan));
  return memory;
}

}  // namespace optimus::step
