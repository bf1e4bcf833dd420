#pragma once
// Fully sharded data parallelism, as PyTorch's FSDP runs it (FULL_SHARD, wrapped by transformer
// block, no no_sync): every GPU has a shard of all parameters and all layers run on every GPU.
//
// Units. A transformer layer is one unit. Embedding, projectors and head form the root unit.
//   - A layer is gathered before its forward and freed after it, and gathered again before its
//     backward, where recomputation uses it too; after the backward its gradients are reduced and
//     scattered. So in every micro-batch. The last layer of the forward is no exception.
//   - The root unit is gathered before the forward and kept until its backward is done.
//   - A frozen layer is gathered for its forward only.
//
// Order. A layer runs all slices of a micro-batch before the next one does, so that it is gathered
// once. All collectives are on one stream: PyTorch has streams for gathers and for reductions, but
// one communicator runs them one after another. The gather of layer k is issued when layer
// k - prefetch is about to run, and starts once layer k - prefetch - 1 has run and was freed: at
// most prefetch + 1 layers are gathered. Prefetch 1 is what PyTorch does: in the forward because of
// limit_all_gathers (two in flight), in the backward by BACKWARD_PRE, which also puts the next
// gather in front of the reduction of the current layer. Nothing is gathered ahead across the turn
// from forward to backward (before the head's backward begins), nor across micro-batches.
//
// Source: the PyTorch documentation, notes/fsdp ("FSDP Prefetch Nuances", "Communication Payload
// Size") and torch.distributed.fsdp (BackwardPrefetch, limit_all_gathers), release 2.8.

#include <vector>

#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/stack.h"
#include "schedule/step/step.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {

// Collectives of one micro-batch: gathers and reductions of all units.
double FsdpCollectivesPerMicroBatch(const Plan& plan, const Stack& stack);

// Fills schedule.programs; schedule.world (pp = tp = 1) and micro_batches must be set. Reads
// plan.fsdp as it is: prefetch 0 gathers nothing ahead.
void LowerFsdp(const Plan& plan, const Stack& stack, const BlockTable& blocks,
               const hw::ProfileCostModel& costs, ir::Schedule& schedule);

// Memory of one GPU. Where FSDP with bf16 mixed precision keeps things:
//   parameters       the gathered units at the peak: the root and prefetch + 1 layers, in bf16; of
//                    frozen layers also the bf16 shards
//   gradients        shards, in fp32
//   optimizer_state  shards: the fp32 parameters, momentum, variance
//   activations      of one micro-batch
//   workspace        recomputation of one layer; gradients that are not yet scattered: of the root
//                    (bf16) and of prefetch + 1 layers (in the type in which they are reduced)
StageMemory FsdpMemory(const Plan& plan, const Stack& stack);

}  // namespace optimus::step
