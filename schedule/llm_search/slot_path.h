#pragma once
// How fast one slot of a pipeline stage can be at the very best: the longest path through its
// operations, each of its own duration, over the edges that every emitted Schedule keeps (the order
// of a stream, the edges inside a block, and that a block waits for the output of the one before
// it). Nothing else is looked at: not who uses the links, not what slows a kernel down. Both make a
// step longer, never shorter.

#include <vector>

#include "base/cost_model.h"
#include "base/units.h"
#include "schedule/ir/schedule.h"
#include "schedule/step/virtual_stages.h"

namespace optimus::llm_search {

// No path leads there. Sums with it stay below every time.
inline constexpr Picoseconds kNoPath{-(std::int64_t{1} << 60)};
inline bool IsPath(Picoseconds time) { return time.value() > kNoPath.value() / 2; }
inline Picoseconds Along(Picoseconds a, Picoseconds b) {
  return IsPath(a) && IsPath(b) ? a + b : kNoPath;
}

// By index of Schedule::kernels and ::collectives: the least duration, without contention and
// interference, on the fastest GPU.
struct WorkTimes {
  std::vector<Picoseconds> kernels, collectives;
  double kernel_factor = 1;  // that the kernels have been multiplied by
};
// `kernel_factor`: of the GPU that is fastest, at most 1 (hardware.slow_gpus).
Picoseconds Scaled(Picoseconds time, double kernel_factor);  // rounded down
WorkTimes PriceWork(const ir::Schedule& schedule, const CostModel& costs, double kernel_factor);

// When the streams of a stage are free, or a slot's output is complete.
struct Ends {
  Picoseconds compute, tensor, output;
};

// The slot from either stream: where that one is free at 0 and the other one does not matter, the
// earliest that the streams are free again and the output is complete. In max-plus algebra this is
// the matrix of the slot.
struct SlotPath {
  Ends from_compute, from_tensor;
  Picoseconds compute;  // sum of the kernels
  // The output where nothing starts before `compute` and `tensor`.
  Picoseconds OutputAfter(Picoseconds compute_free, Picoseconds tensor_free) const {
    const Picoseconds a = Along(compute_free, from_compute.output);
    const Picoseconds b = Along(tensor_free, from_tensor.output);
    return a < b ? b : a;
  }
};

SlotPath PathOf(const std::vector<step::Piece>& pieces, const WorkTimes& times);

}  // namespace optimus::llm_search
