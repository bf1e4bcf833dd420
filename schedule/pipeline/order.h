#pragma once
// A pipeline schedule as an order: for every stage, which micro-batch of which model chunk goes
// forward or backward after which. Durations play no part.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

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
  friend bool operator==(const Slot&, const Slot&) = default;
};

// Chunk c of stage s is virtual stage c * stages + s of the model.
struct Order {
  std::int32_t stages = 0;
  std::int32_t chunks = 1;
  std::int32_t micro_batches = 0;
  std::vector<std::vector<Slot>> slots;  // by stage
};

// How many forwards a stage of the interleaved schedule runs before its first backward (Figure 12).
enum class WarmUp : std::uint8_t {
  kMegatron,  // (stages - s - 1) * 2 + (chunks - 1) * group
  kDeferred,  // as few as keep the pipeline as short at zero transfer time: later forwards move
              // back
};

const char* ToString(SlotKind kind);
std::string ToString(const Slot& slot);  // "forward of chunk 0, micro-batch 3"

}  // namespace optimus::pipeline
