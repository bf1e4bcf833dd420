#include "schedule/step/data_parallel.h"

#include <utility>

#include "schedule/step/precision.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {
namespace {

constexpr int kOptimizerStateTrafficBytes = 24;
constexpr int kGradientNormBytes = 8;  // one fp64 sum of squares
constexpr char kTiedReduce[] = "tied_embedding_all_reduce";

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

Bytes OptimizerTraffic(const Plan& plan, std::int64_t parameters) {
  return Bytes(parameters * (kOptimizerStateTrafficBytes + GradientBytes(plan) + kParameterBytes));
}

Kernel OptimizerKernel(const Plan& plan, const hw::ProfileCostModel& costs,
                       std::int64_t trained_parameters) {
  const std::int64_t shards = OptimizerShards(plan);
  return OptimizerKernel(costs, OptimizerTraffic(plan, (trained_parameters + shards - 1) / shards));
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
                                       StageReplicas replicas,
                                       const std::vector<const VirtualStage*>& chunks,
                                       ProgramBuilder& program, ir::Schedule& schedule)
    : plan_(plan),
      costs_(costs),
      replicas_(std::move(replicas)),
      program_(program),
      schedule_(schedule) {
  for (const VirtualStage* work : chunks) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.work = work;
    chunk.parts.push_back({.parameters = work->trained_parameters});
  }
}

std::int64_t DataParallelWriter::Total() const {
  std::int64_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.work->trained_parameters;
  return sum;
}

void DataParallelWriter::CutIntoBuckets(Chunk& chunk) const {
  const std::vector<Bucket> buckets = BucketsOf(*chunk.work, plan_.dp_bucket_parameters());
  chunk.parts.clear();
  for (const Bucket& bucket : buckets) chunk.parts.push_back({.parameters = bucket.parameters});
  chunk.part_of_forward = BucketOfPieces(*chunk.work, buckets, chunk.work->forward);
  const std::vector<Piece>& pieces = chunk.work->PiecesOf(chunk.completing);
  const std::vector<int> part_of = BucketOfPieces(*chunk.work, buckets, pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (part_of[i] < 0 || pieces[i].block->output < 0) continue;
    chunk.parts[part_of[i]].last_piece = static_cast<std::int64_t>(i);
  }
}

void DataParallelWriter::Begin(const std::vector<pipeline::Slot>& slots) {
  for (const pipeline::Slot& slot : slots) {
    if (!MakesWeightGradients(slot)) continue;
    ++chunks_[slot.chunk].backwards_left;
    chunks_[slot.chunk].completing = slot.kind;
  }
  if (bucketed()) {
    for (Chunk& chunk : chunks_) CutIntoBuckets(chunk);
  }
  if (!has_collectives() || plan_.no_distributed_optimizer()) return;
  if (!overlapped()) {
    exposed_gather_ = AppendGather(Total(), -1);
    return;
  }
  std::vector<bool> seen(chunks_.size(), false);
  for (const pipeline::Slot& slot : slots) {
    if (seen[slot.chunk]) continue;
    seen[slot.chunk] = true;
    // Buckets come in the order of the backward.
    std::vector<Part>& parts = chunks_[slot.chunk].parts;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      part->gather = AppendGather(part->parameters, slot.chunk);
    }
  }
}

std::int64_t DataParallelWriter::AppendGather(std::int64_t parameters, int chunk) {
  if (parameters == 0) return -1;
  const CollectiveWork work = {CollectiveKind::kAllGather, "parameter_all_gather",
                               Bytes(parameters * kParameterBytes)};
  return AppendCollective(work, replicas_.group, SyncTag(Phase::kParameterSync, chunk), -1);
}

std::int64_t DataParallelWriter::GatherFor(const pipeline::Slot& slot, std::size_t piece) {
  // One gather for all chunks needs waiting for only once.
  if (exposed_gather_ >= 0) return std::exchange(exposed_gather_, -1);
  Chunk& chunk = chunks_[slot.chunk];
  if (!bucketed()) return std::exchange(chunk.parts.front().gather, -1);
  if (slot.kind != pipeline::SlotKind::kForward) return -1;
  const int part = chunk.part_of_forward[piece];
  return part < 0 ? -1 : std::exchange(chunk.parts[part].gather, -1);
}

void DataParallelWriter::AfterPiece(const pipeline::Slot& slot, std::size_t piece) {
  if (!bucketed() || !has_collectives() || !MakesWeightGradients(slot)) return;
  Chunk& chunk = chunks_[slot.chunk];
  if (chunk.backwards_left > 1) return;
  for (Part& part : chunk.parts) {
    if (part.last_piece == static_cast<std::int64_t>(piece)) Reduce(part, slot.chunk);
  }
}

void DataParallelWriter::AfterSlot(const pipeline::Slot& slot) {
  if (!MakesWeightGradients(slot) || --chunks_[slot.chunk].backwards_left > 0) return;
  if (!has_collectives() || !overlapped()) return;
  for (Part& part : chunks_[slot.chunk].parts) Reduce(part, slot.chunk);
}

void DataParallelWriter::Reduce(Part& part, int chunk) {
  if (std::exchange(part.reduced, true)) return;
  AppendReduce(part.parameters, chunk);
}

void DataParallelWriter::AppendReduce(std::int64_t parameters, int chunk) {
  if (parameters == 0) return;
  const bool all_reduce = plan_.no_distributed_optimizer();
  const CollectiveWork work = {
      all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
      all_reduce ? "gradient_all_reduce" : "gradient_reduce_scatter",
      Bytes(parameters * GradientBytes(plan_))};
  last_reduce_ = AppendCollective(work, replicas_.group, SyncTag(Phase::kGradientSync, chunk),
                                  program_.last_compute());
}

void DataParallelWriter::AppendTiedReduce() {
  if (replicas_.tied.parameters == 0) return;
  const CollectiveWork work = {CollectiveKind::kAllReduce, kTiedReduce,
                               Bytes(replicas_.tied.parameters * GradientBytes(plan_))};
  AppendCollective(work, TiedGroup(replicas_.tied.stages), SyncTag(Phase::kGradientSync, -1),
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
  AppendTiedReduce();
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
