#pragma once
// Which encoder pipeline takes which micro-batch. Decided on a fluid picture of each pipeline (ops
// can be cut at will, kernels only), which is cheap enough for a local search.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "schedule/bubble/list_graph.h"
#include "schedule/bubble/list_slots.h"

namespace optimus::bubble {

// Kernels that are not cut leave about a tenth of idle time unused where that is cut into slots, so
// the search counts on 11 / 10 of their time. Its times are ten times as large as they are, so that
// nothing is rounded; only where they would overflow, they are not and nothing is added.
inline constexpr Ps kFluidScale = 10;

// One direction of one pipeline in the time of its engine (forward: mirrored).
class FluidPipeline {
 public:
  // slots: compute, by encoder stage. releases: by position in EncoderWork::micro_batches.
  FluidPipeline(const WorkGraph& graph, const std::vector<const Slots*>& slots,
                std::vector<Ps> releases, Ps scale);
  // When all of `owned` (positions) can have ended at the earliest, times `scale`; -kForever for
  // none.
  Ps End(absl::Span<const std::int32_t> owned) const;

 private:
  Ps scale_ = 1;                       // of all that follows but capacity_
  std::vector<Capacity> capacity_;     // by stage
  std::vector<std::vector<Ps>> used_;  // by stage and position: idle time before it begins
  std::vector<Ps> releases_, work_, tail_;
  Ps length_ = 0;
  bool idle_ = false;  // there is nothing to do in this direction
};

struct AssignLimits {
  std::vector<std::int32_t> counts;  // by pipeline, to be met exactly; empty: free
  std::int32_t most = 0;             // per pipeline; 0: any number
  Ps least_forward = -kForever,
     least_backward = -kForever;  // ends that are there in any case, scaled
};

struct Assignment {
  std::vector<std::vector<std::int32_t>> owned;  // by pipeline: positions, ascending
  std::int64_t evaluated = 0;
};

// Least sum of the latest forward end and the latest backward end over all pipelines. Greedy, then
// moves of one micro-batch and swaps of two, as long as one of them helps. As in planner::Split, no
// pipeline is left idle where there are enough micro-batches (unless `counts` says so).
Assignment Assign(const std::vector<FluidPipeline>& forward,
                  const std::vector<FluidPipeline>& backward, std::int32_t micro_batches,
                  const AssignLimits& limits);

}  // namespace optimus::bubble
