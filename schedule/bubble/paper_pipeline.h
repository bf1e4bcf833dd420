#pragma once
// What one encoder pipeline can do on its lanes, whatever the others do: how its micro-batches run
// in line before and after the LLM, and in the slots between the LLM's operations. Everything is
// worked out when it is first asked for, and remembered: splits of the micro-batches over pipelines
// ask for the same things again and again.
//
// Forward in line counts from the start of the step, everything else in times of the LLM alone.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "schedule/bubble/paper_flow.h"

namespace optimus::bubble::paper {

// What all pipelines of an encoder share.
struct EncoderFlows {
  Flow forward, backward;
  GatherEnds gathers;     // of `forward`
  GatherEnds no_gathers;  // as many kNever as any op of one stage asks for
  std::vector<std::array<std::int64_t, 2>> shortest;  // by encoder stage
};

// Where one pipeline sits and what is free there, by encoder stage.
struct PipelineLanes {
  SlotState slots;
  std::vector<InLine> before, after;      // in line: from when on the lanes are free
  std::vector<std::int64_t> first_start;  // of the LLM
  std::vector<std::int64_t> forward_hops, backward_hops;  // in order of the flow
  std::int64_t to_llm = 0, from_llm = 0;
};
// Without the slots that are shorter than every op (see ShortestOps).
void DropShort(const std::vector<std::array<std::int64_t, 2>>& shortest, SlotState& slots);
bool SameLanes(const PipelineLanes& a, const PipelineLanes& b);

class PipelineModel {
 public:
  static constexpr std::int64_t kNoPlace = std::numeric_limits<std::int64_t>::max();

  PipelineModel(const EncoderFlows& flows, PipelineLanes lanes);

  // The k-th micro-batch in line, counted from 0, is at the LLM.
  std::int64_t LineArrival(std::size_t k);
  // The LLM must start so much later than alone for `count` micro-batches in line before it; may be
  // negative.
  std::int64_t LineOverflow(std::size_t count);
  // The x-th micro-batch moved into slots, counted from 0, is at the LLM; kNoPlace.
  std::int64_t SlotArrival(std::size_t x);

  // The step's reductions cannot end earlier, for micro-batches in line after the LLM whose
  // gradients are there at `from` (ascending); kNever for none.
  std::int64_t LineTail(absl::Span<const std::int64_t> from);
  // The same for micro-batches in slots, one by one, when `forward_moved` forwards are in slots.
  // A node stands for a sequence of micro-batches.
  std::int32_t SlotRoot(std::size_t forward_moved, std::int64_t first_from);
  std::int32_t SlotNext(std::int32_t node, std::int64_t from);  // -1: no place
  std::int64_t SlotTail(std::int32_t node) const {
    return slot_nodes_[static_cast<std::size_t>(node)].tail;
  }

  // The same once more, for the times of all ops. `lines`: as after the micro-batches before.
  const PipelineLanes& lanes() const { return lanes_; }
  const UnitTimes& RunLineForward(std::vector<InLine>& lines);
  const UnitTimes& RunLineBackward(std::vector<InLine>& lines, std::int64_t from);
  const UnitTimes* RunSlotsForward(const SlotState& slots, SlotState& left);
  const UnitTimes* RunSlotsBackward(const SlotState& slots, std::int64_t from, SlotState& left);
  // Of `moved` forwards that have a place. Until the next call.
  const SlotState& SlotsAfterForward(std::size_t moved);

 private:
  struct LineNode {
    std::vector<InLine> lines;  // in order of the backward flow
    std::int64_t tail = kNever;
    std::vector<std::pair<std::int64_t, std::int32_t>> next;  // by `from`
  };
  struct SlotNode {
    std::int32_t parent = -1;  // of a root: minus 1, minus the number of moved forwards
    std::int64_t from = kNever;
    std::int64_t tail = kNever;
    std::vector<std::pair<std::int64_t, std::int32_t>> next;  // by `from`; -1: no place
  };
  struct KeptSlots {
    std::int32_t node = -1;
    SlotState slots;
  };

  void FillLine(std::size_t count);
  std::int32_t LineNext(std::int32_t node, std::int64_t from);
  // Leaves the slots of `node` in kept_[depth of the node]; says the depth.
  std::size_t KeepSlots(std::int32_t node);
  const SlotState& Kept(std::size_t depth);
  const UnitTimes* RunSlots(const Flow& flow, const std::vector<std::int64_t>& hops,
                            std::int64_t from, const SlotState& slots, SlotState& left);

  const EncoderFlows& flows_;
  PipelineLanes lanes_;
  std::int64_t passing_ = 0;  // how long a gradient may travel over stages without ops
  UnitTimes times_;
  std::vector<InSlots> walkers_;

  std::vector<InLine> line_;                 // after the last micro-batch of line_arrival_
  std::vector<std::int64_t> line_arrival_;   // by micro-batch
  std::vector<std::int64_t> line_overflow_;  // by count
  std::vector<std::int64_t> slot_arrival_;  // by micro-batch; ends with kNoPlace once there is none
  std::vector<SlotState> forward_slots_;    // by how many are moved; empty where not kept
  SlotState restored_;                      // of restored_count_ forwards, worked out again
  std::size_t restored_count_ = 0;          // 0: none
  std::vector<std::int64_t> forward_last_;  // the last end of all ops moved, by how many

  std::vector<LineNode> line_nodes_;
  std::vector<SlotNode> slot_nodes_;
  std::vector<std::int32_t> slot_roots_;  // by forwards moved; -1: not asked for yet
  std::vector<std::int32_t> path_;        // of the last node asked for
  std::vector<KeptSlots> kept_;           // by depth; [0] names the root, whose slots are above
};

}  // namespace optimus::bubble::paper
