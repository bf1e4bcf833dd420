#pragma once
// What a step does beside the micro-batches: parameter all-gather, gradient reduce-scatter (or
// all-reduce), gradient norm and optimizer step.

#include <array>
#include <cstdint>
#include <vector>

#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/buckets.h"
#include "schedule/step/check_schedule.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/program_builder.h"
#include "schedule/step/virtual_stages.h"

namespace optimus::step {

// A token table that two stages hold, one with the embedding, one with the head that is tied to it.
struct TiedTable {
  std::int64_t parameters = 0;  // on one GPU; 0: there is none
  std::array<std::int32_t, 2> stages{};
};

// With whom one stage keeps its parameters in step.
struct StageReplicas {
  ir::Group group;  // of the ranks that hold the same as one of its GPUs
  TiedTable tied;   // .parameters is 0 on stages that do not hold it
};

// One stage's share of the step's begin and end. Frozen parameters are neither gathered nor
// reduced.
//
// DP_EXPOSED: one all-gather before the first compute, one reduce-scatter after the last backward.
// DP_OVERLAPPED: one of each per model chunk, gathers in the order of first use, a reduce-scatter
// as soon as the chunk's last backward has computed its weight gradients.
// DP_OVERLAPPED with dp_bucket_parameters: one of each per bucket of layers. The first forward of a
// chunk waits for a bucket where it comes to it; the last backward reduces one as soon as all its
// weight gradients are there.
//
// Under DualPipe a stage reduces and gathers with the stage that holds the other copies of its
// layers: over twice DP ranks. Both come to their chunks in mirrored order, so to the same layers
// in the same order.
//
// The gradients of a tied table are all-reduced between its two stages after the reductions of both
// and before the norm, as in Megatron-LM (core/distributed/finalize_model_grads.py). The whole
// table, also under the distributed optimizer, where each rank has only its own shard summed:
// Megatron-LM gives the table a bucket of its own, so that both stages cut it into the same shards,
// and sends the buffer as it is.
class DataParallelWriter {
 public:
  // `chunks`: the virtual stages that the stage holds, by model chunk; they must outlive it.
  DataParallelWriter(const Plan& plan, const hw::ProfileCostModel& costs, StageReplicas replicas,
                     const std::vector<const VirtualStage*>& chunks, ProgramBuilder& program,
                     ir::Schedule& schedule);

  // Before the stage's first slot.
  void Begin(const std::vector<pipeline::Slot>& slots);
  // The all-gather that the next compute operation must wait for before piece `piece` of the slot,
  // or -1. Says so once.
  std::int64_t GatherFor(const pipeline::Slot& slot, std::size_t piece);
  // After every piece that has work, and after every slot.
  void AfterPiece(const pipeline::Slot& slot, std::size_t piece);
  void AfterSlot(const pipeline::Slot& slot);
  // After the last slot: what is left of the reduce-scatters, gradient norm, optimizer.
  void End();

 private:
  // A gather and a reduction.
  struct Part {
    std::int64_t parameters = 0;
    std::int64_t gather = -1;      // -1: none, or already waited for
    std::int64_t last_piece = -1;  // of the slot that completes its gradients; -1: has none there
    bool reduced = false;
  };
  struct Chunk {
    const VirtualStage* work = nullptr;
    int backwards_left = 0;  // slots that complete weight gradients
    pipeline::SlotKind completing = pipeline::SlotKind::kBackward;  // the last of them
    std::vector<Part> parts;
    std::vector<int> part_of_forward;  // by piece; empty where the chunk is not in buckets
  };

  bool has_collectives() const {
    return plan_.data_parallel() * ModelCopies(plan_) > 1 && !plan_.no_optimizer();
  }
  bool overlapped() const { return plan_.dp_communication() == Plan::DP_OVERLAPPED; }
  bool bucketed() const { return overlapped() && plan_.dp_bucket_parameters() > 0; }
  std::int64_t Total() const;
  void CutIntoBuckets(Chunk& chunk) const;
  std::int64_t AppendGather(std::int64_t parameters, int chunk);
  void Reduce(Part& part, int chunk);
  void AppendReduce(std::int64_t parameters, int chunk);
  void AppendTiedReduce();
  std::uint32_t AppendCollective(const CollectiveWork& work, const ir::Group& group, ir::Tag tag,
                                 std::int64_t dependency);
  void AppendOptimizer(std::int64_t gradient_norm);

  const Plan& plan_;
  const hw::ProfileCostModel& costs_;
  StageReplicas replicas_;
  std::vector<Chunk> chunks_;
  ProgramBuilder& program_;
  ir::Schedule& schedule_;
  std::int64_t exposed_gather_ = -1;  // of all chunks
  std::int64_t last_reduce_ = -1;
};

// HBM traffic of Adam on `parameters` per GPU: fp32 master copy, momentum and variance read and
// written (24 bytes), gradient read (4, or 2), bf16 parameter written (2).
Bytes OptimizerTraffic(const Plan& plan, std::int64_t parameters);

// fixed: what the profile charges for the whole optimizer step; the memory-bound kernel of
// `traffic` instead where that one lasts longer.
Kernel OptimizerKernel(const hw::ProfileCostModel& costs, Bytes traffic);
// The traffic of one GPU's share of its stage's parameters.
Kernel OptimizerKernel(const Plan& plan, const hw::ProfileCostModel& costs,
                       std::int64_t trained_parameters);

}  // namespace optimus::step
