#pragma once
// What the bubble scheduler is given: the LLM's own timeline with its idle slots, and the work of
// the encoders, kernel by kernel. No models, no profiles, no Schedule: only durations and orders,
// so that small cases can be made by hand.
//
// Time: picoseconds from the start of the step of the LLM run alone. In a result the LLM is shifted
// by delta_f; times of a result count from the start of the real step.

#include <cstdint>
#include <vector>

#include "base/phase.h"
#include "base/units.h"
#include "schedule/planner/encoder_plan.h"

namespace optimus::bubble {

struct Interval {
  Picoseconds start, end;
  Picoseconds length() const { return end - start; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// One LLM pipeline stage, alone. All its lanes do the same at the same time. Idle slots are sorted,
// disjoint, not empty, maximal, and inside [first_start, last_end].
struct LlmStage {
  Picoseconds first_start;             // S_d: first LLM compute operation starts
  Picoseconds last_end;                // E_d: last forward or backward compute operation has ended
  std::vector<Interval> compute_idle;  // cb: the compute stream runs nothing
  std::vector<Interval> link_idle;     // lf: no tensor-parallel collective is on NVLink
  Picoseconds compute;                 // sum of forward and backward compute
  // Data-parallel communication after the last backward ends here (equals last_end without any).
  Picoseconds gradients_reduced;
};

struct LlmTimeline {
  std::vector<LlmStage> stages;
  std::vector<Picoseconds> forward_needed;  // F_i, by micro-batch: stage 0, chunk 0 starts it
  std::vector<Picoseconds> backward_made;   // B_i: stage 0, chunk 0 has ended its backward
  // From the last gradient reduction of any stage to the end: gradient norm and optimizer.
  Picoseconds after_reduction;
  Picoseconds step;  // T_llm = max over stages of gradients_reduced, plus after_reduction
};

enum class Resource : std::uint8_t { kCompute, kLink };

// One kernel or tensor-parallel collective of an encoder.
struct WorkOp {
  Resource resource = Resource::kCompute;
  Picoseconds duration;
  std::int32_t work = -1;  // index into Schedule::kernels (kCompute) or ::collectives (kLink)
  Phase phase = Phase::kForward;
  std::int16_t layer = -1;  // or ir::kProjectorLayer
  std::int16_t slice = -1;
  // Needs this part of the stage's input (a message, or for the first encoder stage nothing).
  // -1: no part; only its dependencies.
  std::int16_t input_part = -1;
  std::uint32_t first_dependency = 0;  // range in StageWork::dependencies
  std::uint32_t dependency_count = 0;
};

// What one encoder stage does for one micro-batch in one direction. `ops` is in issue order. An op
// starts when its dependencies (earlier ops of the same StageWork) have ended and its part of the
// input is there. Ops of one resource and one chain keep their order; ops of different chains need
// not (the paper's scheduler keeps all of them in order).
struct StageWork {
  std::vector<WorkOp> ops;
  std::vector<std::uint32_t> dependencies;
  std::vector<std::int32_t> chain;  // by op: slices are chains of their own; see above
  std::int32_t input_parts = 1;
  // By part of the output: the op whose end completes it. The next stage's input has as many parts.
  std::vector<std::uint32_t> outputs;
  Picoseconds compute;  // sum over kCompute
  Picoseconds link;     // sum over kLink
};

// Data-parallel communication of an encoder on the network card of every lane that holds it, in
// order. Empty where there is none. Gathers come before the LLM's own gather, so that the LLM
// starts later by their sum; reductions come after the LLM's own.
struct EncoderSync {
  struct Bucket {
    std::int16_t first_layer = 0, last_layer = 0;  // inclusive; kProjectorLayer counts as the last
    Picoseconds duration;
    std::int32_t work = -1;  // index into Schedule::collectives
  };
  // By encoder stage. Gathers in order of layers, reductions in the reverse order.
  std::vector<std::vector<Bucket>> gathers, reductions;
};

// One encoder under one plan.
struct EncoderWork {
  std::int32_t encoder = 0;  // module encoder + 1
  planner::EncoderPlan plan;
  bool frozen =
      false;  // its layers have no backward; the projector's is in `backward` all the same
  std::vector<std::int32_t> micro_batches;   // that hold input for it, ascending
  std::vector<StageWork> forward, backward;  // by encoder stage; backward may have no ops (frozen)
  std::vector<Picoseconds> forward_hop, backward_hop;  // one part, from encoder stage p to p + 1
                                                       // (back), by block * (PP_enc - 1) + p
  // One micro-batch between the last encoder stage and LLM stage 0, by encoder pipeline; 0 where
  // both are on the same ranks.
  std::vector<Picoseconds> to_llm, from_llm;
  EncoderSync sync;
};

struct Problem {
  LlmTimeline llm;
  std::int32_t lanes = 1;  // per stage
  std::int32_t tensor_parallel = 1;
  std::vector<EncoderWork> encoders;  // scheduled in this order
};

// Lanes of encoder pipeline j at its stage p: LLM stage, and the lanes [first, first + count).
struct PipelinePlace {
  std::int32_t stage = 0;
  std::int32_t first_lane = 0, lane_count = 1;
};
PipelinePlace PlaceOf(const Problem& problem, const EncoderWork& encoder, std::int32_t pipeline,
                      std::int32_t encoder_stage);
std::int32_t PipelineCount(const Problem& problem, const EncoderWork& encoder);

}  // namespace optimus::bubble
