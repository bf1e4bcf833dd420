#pragma once
// One encoder by the paper's Algorithm 2, on what the encoders before it have left.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/bubble/paper_phases.h"
#include "schedule/bubble/paper_pipeline.h"
#include "schedule/bubble/problem.h"
#include "schedule/bubble/result.h"
#include "schedule/bubble/slots.h"
#include "schedule/bubble/sync.h"
#include "schedule/planner/splits.h"

namespace optimus::bubble::paper {

// What encoders have taken so far.
struct Occupation {
  std::vector<LaneSlots> slots;       // what is free, by lane
  std::vector<InLine> before, after;  // by lane: real time, and time of the LLM alone
  Picoseconds shift;                  // of the LLM
  Tail tail;
};
// slots: false leaves them out, for a schedule without moves.
Occupation NothingPlaced(const Problem& problem, bool slots);

class EncoderScheduler {
 public:
  // moves: false leaves everything in line (the coarse schedule). `occupation` must outlive it.
  EncoderScheduler(const Problem& problem, const EncoderWork& encoder, const GatherEnds& gathers,
                   Occupation& occupation, bool moves);

  // What this split adds to the step: shift of the LLM, and what comes after its end; or anything
  // that is not below what an earlier call returned, where this split is not better.
  std::int64_t Cost(const planner::Split& split);

  // Schedules this split and takes its places. Times of forwards in line are those of the real
  // step, all others those of the LLM alone, until Shift().
  PlacedEncoder Place(const planner::Split& split);

  // Makes all times those of the step, in which the LLM is shifted.
  static void Shift(Picoseconds shift, PlacedEncoder& placed);

 private:
  using Pipeline = std::int32_t;
  // One micro-batch in the order of a pipeline's backwards.
  struct Gradient {
    std::int64_t from = 0;
    std::int32_t micro_batch = 0;
    std::int32_t order = 0;  // of its forward in its pipeline
    // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
    friend auto operator<=>(const Gradient&, const Gradient&) = default;
  };

  PipelineLanes LanesOf(Pipeline pipeline) const;
  PipelinePlace Place(Pipeline pipeline, std::size_t encoder_stage) const;
  // Who works on which gradient, and when they are there.
  void Assign(const planner::Split& split);
  void PlaceForwards(Pipeline pipeline, std::size_t moved, PlacedPipeline& placed);
  void PlaceBackwards(Pipeline pipeline, std::size_t forward_moved, std::size_t moved,
                      PlacedPipeline& placed);
  void Write(const UnitTimes& times, bool forward, bool interior, PlacedMicroBatch& unit) const;
  void Occupy(const PlacedEncoder& placed);
  void TakeLines(Pipeline pipeline, const std::vector<InLine>& lines, bool backward);

  const Problem& problem_;
  const EncoderWork& encoder_;
  Occupation& occupation_;
  EncoderFlows flows_;
  std::vector<std::unique_ptr<PipelineModel>> owned_;
  Models models_;
  ForwardPhase forward_;
  BackwardPhase backward_;
  std::int64_t base_;  // the LLM's own reductions end
  std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<Gradient>> gradients_;    // by pipeline
  std::vector<BackwardPhase::Sequence> sequences_;  // their times
};

}  // namespace optimus::bubble::paper
