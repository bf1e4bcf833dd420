#pragma once
// A pipeline schedule as an order: for every stage, which micro-batch of which model chunk goes
// forward or backward after which. Durations play no part.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/pipeline/placement.h"

namespace optimus::pipeline {

enum class SlotKind : std::uint8_t {
  kForward,
  kBackward,      // data and weight gradients together
  kBackwardData,  // apart, for schedules of the zero-bubble family
  kBackwardWeight,
};

struct Slot {
  SlotKind kind = SlotKind::kForward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  // A forward that shares the stage with the whole backward that is the next slot: kernels of one
  // run under communication of the other (DualPipe's overlapped chunks, torchtitan's OVERLAP_F_B).
  bool with_next = false;
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct Order {
  std::int32_t stages = 0;
  std::int32_t chunks = 1;
  std::int32_t micro_batches = 0;        // kBidirectional: of both directions together
  std::vector<std::vector<Slot>> slots;  // by stage
  Placement placement = Placement::kLoop;
};

// How many forwards a stage of the interleaved schedule runs before its first backward (Figure 12).
enum class WarmUp : std::uint8_t {
  kMegatron,  // (stages - s - 1) * 2 + (chunks - 1) * group
  kDeferred,  // as few as keep the pipeline as short at zero transfer time: later forwards move
              // back
};

inline Place PlaceOf(std::size_t stage, const Slot& slot) {
  return {static_cast<std::int32_t>(stage), slot.chunk};
}
inline int VirtualStageOf(const Order& order, std::size_t stage, const Slot& slot) {
  return VirtualStageOf(order.placement, order.stages, PlaceOf(stage, slot));
}

// Micro-batches that pass chunk `chunk`: all; kBidirectional: the first half passes chunk 0, the
// rest chunk 1.
struct MicroBatchRange {
  std::int32_t begin = 0, end = 0;
};
MicroBatchRange MicroBatchesOf(const Order& order, int chunk);

const char* ToString(SlotKind kind);
std::string ToString(const Slot& slot);  // "forward of chunk 0, micro-batch 3"

}  // namespace optimus::pipeline
