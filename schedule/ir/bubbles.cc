#include "schedule/ir/bubbles.h"

#include <algorithm>
#include <cstddef>

namespace optimus::ir {
namespace {

BubbleClass ClassifyDataParallel(const Operation& operation, CollectiveKind kind) {
  if (operation.tag.phase == Phase::kParameterSync) return BubbleClass::kDpAllGather;
  if (operation.tag.phase == Phase::kGradientSync) return BubbleClass::kDpReduceScatter;
  const bool spreads_parameters =
      kind == CollectiveKind::kAllGather || kind == CollectiveKind::kBroadcast;
  return spreads_parameters ? BubbleClass::kDpAllGather : BubbleClass::kDpReduceScatter;
}

// Replicas of an encoder beside the LLM are on other stages and blocks of tensor-parallel ranks
// too, and those of a model of two copies on a pair of stages.
bool IsOverReplicas(const Operation& operation, const Group& group) {
  const Phase phase = operation.tag.phase;
  if (phase != Phase::kParameterSync && phase != Phase::kGradientSync) return false;
  return group.pp_stride > 0 || group.tp_stride > 0 || (group.paired() && group.over_dp) ||
         (group.over_pp && operation.tag.module > kLlmModule);
}

BubbleClass ClassifyCollective(const Schedule& schedule, const Operation& operation,
                               bool after_last) {
  const Collective& collective = schedule.collectives[operation.work];
  const Group& group = schedule.groups[collective.group];
  if (IsOverReplicas(operation, group)) {
    return ClassifyDataParallel(operation, collective.work.kind);
  }
  // A collective over the pipeline (the gradient norm, the sum of a tied embedding's gradients)
  // waits for other stages.
  if (group.over_pp) return after_last ? BubbleClass::kPpCooldown : BubbleClass::kPpOther;
  if (group.over_dp) return ClassifyDataParallel(operation, collective.work.kind);
  return BubbleClass::kTp;
}

// Ids of the first and the last forward-or-backward compute of a program; where there is none,
// every operation comes both before the first and after the last.
struct ComputeRange {
  std::int64_t first = 0;
  std::int64_t last = -1;
};

bool IsBesideLlm(const Schedule& schedule, const Tag& tag) {
  return tag.module >= 0 && static_cast<std::size_t>(tag.module) < schedule.modules.size() &&
         schedule.modules[tag.module].pipelines > 0;
}

// Kernels of encoders beside the LLM count only where there are no others.
ComputeRange FindComputeRange(const Schedule& schedule, const Program& program) {
  const auto count = static_cast<std::int64_t>(program.operations.size());
  ComputeRange range{count, -1}, beside{count, -1};
  for (std::int64_t id = 0; id < count; ++id) {
    const Operation& operation = program.operations[id];
    if (!IsForwardOrBackwardCompute(operation)) continue;
    ComputeRange& its_range = IsBesideLlm(schedule, operation.tag) ? beside : range;
    its_range.first = std::min(its_range.first, id);
    its_range.last = id;
  }
  return range.last >= 0 ? range : beside;
}

}  // namespace

bool IsCompute(const Operation& operation) {
  return operation.kind == OperationKind::kKernel && operation.stream == Stream::kCompute;
}

bool IsForwardOrBackwardCompute(const Operation& operation) {
  if (!IsCompute(operation)) return false;
  switch (operation.tag.phase) {
    case Phase::kForward:
    case Phase::kRecompute:
    case Phase::kBackward:
    case Phase::kWeightGradient:
      return true;
    case Phase::kParameterSync:
    case Phase::kGradientSync:
    case Phase::kOptimizer:
      return false;
  }
  return false;
}

bool IsOptimizerCompute(const Operation& operation) {
  return IsCompute(operation) && operation.tag.phase == Phase::kOptimizer;
}

BubbleClass ClassifyWait(const Schedule& schedule, const Operation& dependency, bool before_first,
                         bool after_last) {
  switch (dependency.kind) {
    case OperationKind::kReceive:
      if (before_first) return BubbleClass::kPpWarmup;
      return after_last ? BubbleClass::kPpCooldown : BubbleClass::kPpOther;
    case OperationKind::kCollective:
      return ClassifyCollective(schedule, dependency, after_last);
    case OperationKind::kKernel:
    case OperationKind::kSend:
      break;
  }
  return after_last ? BubbleClass::kPpCooldown : BubbleClass::kPpOther;
}

BubbleClass TailClass(const Schedule& schedule, const Operation& operation) {
  return ClassifyWait(schedule, operation, /*before_first=*/false, /*after_last=*/true);
}

std::vector<BubbleClass> ClassifyDependencies(const Schedule& schedule, const Program& program) {
  std::vector<BubbleClass> classes(program.dependencies.size(), BubbleClass::kPpOther);
  const ComputeRange range = FindComputeRange(schedule, program);
  for (std::size_t id = 0; id < program.operations.size(); ++id) {
    const Operation& operation = program.operations[id];
    if (!IsCompute(operation)) continue;
    const bool before_first = static_cast<std::int64_t>(id) <= range.first;
    const bool after_last = static_cast<std::int64_t>(id) > range.last;
    for (std::size_t i = 0; i < operation.dependency_count; ++i) {
      const std::size_t entry = operation.first_dependency + i;
      const Operation& dependency = program.operations[program.dependencies[entry]];
      classes[entry] = ClassifyWait(schedule, dependency, before_first, after_last);
    }
  }
  return classes;
}

// Written apart from StallAccount and ClassifyDependencies on purpose: it is their check.
RankAccount AccountFromSpans(const Schedule& schedule, const Program& program,
                             const std::vector<Picoseconds>& starts,
                             const std::vector<Picoseconds>& ends, Picoseconds step) {
  const ComputeRange range = FindComputeRange(schedule, program);
  RankAccount account;
  Picoseconds now;
  auto idle_until = [&](Picoseconds until, BubbleClass cause) {
    const Picoseconds wait = std::max(until - now, Picoseconds(0));
    account.bubbles[static_cast<std::size_t>(cause)] += wait;
    now += wait;
  };
  std::int64_t last_other = -1;
  const auto count = static_cast<std::int64_t>(program.operations.size());
  for (std::int64_t id = 0; id < count; ++id) {
    const Operation& operation = program.operations[id];
    if (!IsCompute(operation)) {
      if (last_other < 0 || ends[id] >= ends[last_other]) last_other = id;
      continue;
    }
    for (const std::uint32_t dependency : program.DependenciesOf(operation)) {
      idle_until(ends[dependency], ClassifyWait(schedule, program.operations[dependency],
                                                id <= range.first, id > range.last));
    }
    idle_until(starts[id], BubbleClass::kPpOther);
    (IsOptimizerCompute(operation) ? account.optimizer : account.compute) += ends[id] - now;
    now = ends[id];
  }
  if (last_other >= 0) {
    idle_until(ends[last_other], TailClass(schedule, program.operations[last_other]));
  }
  idle_until(step, BubbleClass::kPpCooldown);
  return account;
}

}  // namespace optimus::ir
