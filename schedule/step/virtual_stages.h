#pragma once
// What every virtual stage does for one micro-batch, from its items or from measured times.

#include <cstdint>
#include <vector>

#include "schedule/ir/schedule.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/placing.h"
#include "schedule/step/stack.h"
#include "schedule/step/work_tables.h"

namespace optimus::step {

// What a slot of one virtual stage needs to know about its neighbours.
struct Edges {
  // Index into Schedule::transfers; -1: no message (first or last virtual stage, a neighbour on the
  // same pipeline stage, or nothing trained in front).
  std::int32_t forward_in = -1, forward_out = -1, backward_in = -1, backward_out = -1;
};

// One block of a virtual stage; the tag has module, layer and slice.
struct Piece {
  const LoweredBlock* block = nullptr;
  ir::Tag tag;
};

struct StageItem {
  ir::Tag tag;                          // module and layer
  std::int64_t trained_parameters = 0;  // on one GPU
};

// All that is lowered of a virtual stage, for one micro-batch.
struct VirtualStage {
  std::vector<Piece> forward, backward;
  std::vector<Piece> backward_data, backward_weight;  // the two parts of `backward`
  // Measured stages only: what a forward and a whole backward that share the stage are instead. One
  // after the other they last as long as both together.
  std::vector<Piece> shared_forward, shared_backward;
  Edges edges;
  std::vector<StageItem> items;         // in the order of the forward; empty for measured stages
  std::int64_t trained_parameters = 0;  // of them together
  // Of them, on one GPU, the table that is held twice: with the embedding, and where that is on
  // another stage, with the head that is tied to it. 0 elsewhere, and where it is not trained.
  std::int64_t tied_parameters = 0;

  const std::vector<Piece>& PiecesOf(pipeline::SlotKind kind) const;
};

// Module, layer and (of an encoder's layer) slice of an item's operations.
ir::Tag TagOf(const Item& item, int slice);

// Encoder layers run slice by slice: the slice is the outer loop, the layer the inner one; backward
// is the mirror image. `blocks` must outlive the result. Interns transfers into `schedule`.
std::vector<VirtualStage> VirtualStagesOf(const Stack& stack, const ItemRanges& ranges,
                                          const Placing& placing, const BlockTable& blocks,
                                          ir::Schedule& schedule);

// Measured stages: one kernel of fixed duration forward; data gradient (and weight gradient apart,
// where it was measured) backward. The gradient of a whole backward is sent when both are done, as
// 1F1B does.
struct ProfiledBlocks {
  LoweredBlock forward, backward, backward_data, backward_weight;
  LoweredBlock shared_forward, shared_backward;
};
// `parts`: how many chunks of a stage share its times.
ProfiledBlocks BlocksOf(const ProfiledStages& times, int parts, ir::Schedule& schedule);
std::vector<VirtualStage> VirtualStagesOf(const ProfiledStages& times, const Placing& placing,
                                          const ProfiledBlocks& blocks, ir::Schedule& schedule);

}  // namespace optimus::step
