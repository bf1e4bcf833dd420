#include "schedule/step/data_parallel.h"

#include <numeric>
#include <utility>

#include "schedule/step/precision.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {
namespace {

constexpr int kOptimizerTrafficBytes = 30;
constexpr int kGradientNormBytes = 8;  // one fp64 sum of squares

ir::Tag SyncTag(Phase phase, int chunk) {
  ir::Tag tag;
  tag.phase = phase;
  tag.chunk = static_cast<std::int16_t>(chunk);
  return tag;
}

// With the last of these the gradients of a chunk are complete.
bool MakesWeightGradients(const pipeline::Slot& slot) {
  return slot.kind == pipeline::SlotKind::kBackward ||
         slot.kind == pipeline::SlotKind::kBackwardWeight;
}

}  // namespace

Bytes OptimizerTraffic(std::int64_t parameters) {
  return Bytes(parameters * kOptimizerTrafficBytes);
}

Kernel OptimizerKernel(const Plan& plan, const hw::ProfileCostModel& costs,
                       std::int64_t trained_parameters) {
  const std::int64_t shards = plan.no_distributed_optimizer() ? 1 : plan.data_parallel();
  return OptimizerKernel(costs, OptimizerTraffic((trained_parameters + shards - 1) / shards));
}

Kernel OptimizerKernel(const hw::ProfileCostModel& costs, Bytes traffic) {
  Kernel by_bytes;
  by_bytes.kind = KernelKind::kMemoryBound;
  by_bytes.name = "optimizer_step";
  by_bytes.bytes = traffic;
  Kernel fixed;
  fixed.kind = KernelKind::kFixed;
  fixed.name = "optimizer_step";
  fixed.fixed = costs.optimizer_overhead();
  return costs.KernelTime(by_bytes) > fixed.fixed ? by_bytes : fixed;
}

DataParallelWriter::DataParallelWriter(const Plan& plan, const hw::ProfileCostModel& costs,
                                       std::vector<std::int64_t> trained, ProgramBuilder& program,
                                       ir::Schedule& schedule)
    : plan_(plan),
      costs_(costs),
      trained_(std::move(trained)),
      program_(program),
      schedule_(schedule),
      gathers_(trained_.size(), -1),
      backwards_left_(trained_.size(), 0) {}

std::int64_t DataParallelWriter::Total() const {
  return std::accumulate(trained_.begin(), trained_.end(), std::int64_t{0});
}

void DataParallelWriter::Begin(const std::vector<pipeline::Slot>& slots) {
  for (const pipeline::Slot& slot : slots) {
    if (MakesWeightGradients(slot)) ++backwards_left_[slot.chunk];
  }
  if (!has_collectives() || plan_.no_distributed_optimizer()) return;
  if (!overlapped()) {
    gathers_.assign(gathers_.size(), AppendGather(Total(), -1));
    return;
  }
  for (const pipeline::Slot& slot : slots) {
    if (gathers_[slot.chunk] >= 0) continue;
    gathers_[slot.chunk] = AppendGather(trained_[slot.chunk], slot.chunk);
  }
}

std::int64_t DataParallelWriter::AppendGather(std::int64_t parameters, int chunk) {
  if (parameters == 0) return -1;
  const CollectiveWork work = {CollectiveKind::kAllGather, "parameter_all_gather",
                               Bytes(parameters * kParameterBytes)};
  return AppendCollective(work, DataParallelGroup(), SyncTag(Phase::kParameterSync, chunk), -1);
}

std::int64_t DataParallelWriter::GatherFor(const pipeline::Slot& slot) {
  const std::int64_t gather = std::exchange(gathers_[slot.chunk], -1);
  // One gather for all chunks needs waiting for only once.
  if (!overlapped()) gathers_.assign(gathers_.size(), -1);
  return gather;
}

void DataParallelWriter::AfterSlot(const pipeline::Slot& slot) {
  if (!MakesWeightGradients(slot) || --backwards_left_[slot.chunk] > 0) return;
  if (has_collectives() && overlapped()) AppendReduce(trained_[slot.chunk], slot.chunk);
}

void DataParallelWriter::AppendReduce(std::int64_t parameters, int chunk) {
  if (parameters == 0) return;
  const bool all_reduce = plan_.no_distributed_optimizer();
  const CollectiveWork work = {
      all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
      all_reduce ? "gradient_all_reduce" : "gradient_reduce_scatter",
      Bytes(parameters * kGradientBytes)};
  last_reduce_ = AppendCollective(work, DataParallelGroup(), SyncTag(Phase::kGradientSync, chunk),
                                  program_.last_compute());
}

std::uint32_t DataParallelWriter::AppendCollective(const CollectiveWork& work,
                                                   const ir::Group& group, ir::Tag tag,
                                                   std::int64_t dependency) {
  ir::Operation op;
  op.kind = ir::OperationKind::kCollective;
  op.stream = ir::Stream::kDataParallel;
  op.tag = tag;
  const std::int32_t group_index = Intern(schedule_.groups, group);
  op.work = Intern(schedule_.collectives, ir::Collective{work, group_index});
  const auto before = static_cast<std::uint32_t>(dependency);
  return program_.Append(op, {&before, dependency >= 0 ? 1U : 0U});
}

void DataParallelWriter::End() {
  if (plan_.no_optimizer()) return;
  if (has_collectives() && !overlapped()) AppendReduce(Total(), -1);
  std::int64_t gradient_norm = -1;
  if (schedule_.world.gpus() > 1) {
    const CollectiveWork work = {CollectiveKind::kAllReduce, "grad_norm",
                                 Bytes(kGradientNormBytes)};
    gradient_norm = AppendCollective(work, ModelGroup(), SyncTag(Phase::kGradientSync, -1),
                                     program_.last_compute());
  }
  AppendOptimizer(gradient_norm);
}

void DataParallelWriter::AppendOptimizer(std::int64_t gradient_norm) {
  std::vector<std::uint32_t> dependencies;
  for (const std::int64_t before : {last_reduce_, gradient_norm}) {
    if (before >= 0) dependencies.push_back(static_cast<std::uint32_t>(before));
  }
  ir::Operation op;
  op.tag = SyncTag(Phase::kOptimizer, -1);
  op.work = Intern(schedule_.kernels, OptimizerKernel(plan_, costs_, Total()));
  program_.Append(op, dependencies);
}

}  // namespace optimus::step
