#pragma once
// One encoder in the list scheduler: its graphs, which pipeline takes which micro-batch, and where
// every op is. Times are those of the LLM alone until Fill().

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "schedule/bubble/list_assign.h"
#include "schedule/bubble/list_engine.h"
#include "schedule/bubble/list_graph.h"
#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"
#include "schedule/bubble/slots.h"

namespace optimus::bubble {

using Lanes = std::vector<LaneSlots>;  // by LaneIndex; outer slots included

class ListEncoder {
 public:
  // gathers: by encoder stage and bucket, from the start of the step (PlaceGathers).
  ListEncoder(const Problem& problem, const EncoderWork& work,
              const std::vector<std::vector<Interval>>& gathers);

  // Gives every micro-batch a pipeline and places its forward pass as late as the deadlines allow.
  // `split` and `most` as in SearchOptions (empty, 0: free); card_free: by LLM stage, when the
  // network cards are free. Returns the shift of the LLM that this needs; anything up to
  // least_shift is as good.
  Ps PlaceForward(const Lanes& lanes, const planner::Split& split, std::int32_t most,
                  Ps least_shift, const std::vector<Picoseconds>& card_free);
  // The same ops in the same order as early as the shift allows, none later than before.
  void MoveForwardEarly(const Lanes& lanes, Ps shift);
  // Returns the end of the step before the optimizer, as far as this encoder decides it.
  // card_free: moved on by its reductions.
  Ps PlaceBackward(const Lanes& lanes, std::vector<Picoseconds>& card_free);
  // Takes what is placed in this direction out of `lanes`.
  void Occupy(Direction direction, Lanes& lanes) const;
  // The splits and starts of ops; the LLM starts later by `shift`.
  void Fill(Ps shift, PlacedEncoder& placed) const;

  std::int64_t evaluated() const { return evaluated_; }

 private:
  // By job * nodes + node: start, in the order of ops of EncoderWork; and the order of starts.
  struct Times {
    std::vector<Ps> start;
    std::vector<std::uint32_t> sequence;
  };
  struct View {                    // owns what a PipelineView points to
    std::vector<LaneSlots> slots;  // by encoder stage
    PipelineView view;
  };

  std::vector<View> ViewsOf(const Lanes& lanes, Direction direction, bool mirrored) const;
  std::vector<Ps> ReleasesOf(std::size_t pipeline, Direction direction) const;
  AssignLimits LimitsOf(const planner::Split& split, std::int32_t most, Ps least_shift,
                        const std::vector<Picoseconds>& card_free) const;
  void Assign(const std::vector<View>& forward, const std::vector<View>& backward,
              AssignLimits limits);
  Ps FluidScale() const;
  std::vector<FluidPipeline> FluidOf(const std::vector<View>& views, Direction direction) const;
  std::vector<ListJob> JobsOf(std::size_t pipeline, Direction direction) const;
  // The least cost of the costliest pipeline: that one tries the next variant as long as this helps
  // and its cost is above `floor`. Pipelines share no lane, so each may have a variant of its own.
  Ps PlaceAll(const std::vector<View>& views, Direction direction, Ps floor,
              absl::FunctionRef<Ps(const ListPlacement&)> cost, std::vector<ListPlacement>& best);
  Ps ShiftFor(const ListPlacement& mirrored) const;
  void MoveEarly(const View& view, Ps shift, Times& times) const;
  // ready: by encoder stage and bucket, as PlaceReductions takes it.
  using Ready = std::vector<std::vector<Picoseconds>>;
  Ready ReadyOf(const ListPlacement& placement) const;
  Ps EndOf(const Ready& ready, std::vector<Picoseconds>& card_free) const;
  const WorkGraph& GraphOf(Direction direction) const {
    return direction == Direction::kForward ? forward_graph_ : backward_graph_;
  }
  void FillStage(const WorkGraph& graph, const Times& times, std::size_t job, std::size_t stage,
                 Ps shift, PlacedStage& placed) const;
  void FillUnit(std::size_t pipeline, std::size_t job, Ps shift, PlacedMicroBatch& unit) const;

  const Problem& problem_;
  const EncoderWork& work_;
  WorkGraph forward_graph_;  // mirrored
  WorkGraph backward_graph_;
  std::vector<Ps> gathered_;             // by forward node: its parameters are there
  std::vector<std::int32_t> reduction_;  // by backward node: bucket of its encoder stage; -1: none
  Ps first_gathered_ = 0;
  std::vector<std::vector<std::int32_t>> owned_;  // by pipeline: positions in work_.micro_batches
  std::vector<Times> forward_, backward_;         // by pipeline
  ListEngine engine_;
  std::int64_t evaluated_ = 0;
};

}  // namespace optimus::bubble
