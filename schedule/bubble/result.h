#pragma once
// What the bubble scheduler returns: when and where every encoder kernel of every micro-batch runs.

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "schedule/bubble/problem.h"
#include "schedule/planner/splits.h"

namespace optimus::bubble {

// One micro-batch on one encoder stage in one direction. Times count from the start of the step.
struct PlacedStage {
  std::vector<Picoseconds> starts;  // by op of the StageWork; an op lasts its own duration
  bool interior = false;            // placed into slots between LLM kernels (paper's scheduler)
};

struct PlacedMicroBatch {
  std::int32_t micro_batch = -1;  // LLM micro-batch that it becomes, in both directions
  std::vector<PlacedStage> forward, backward;  // by encoder stage
  Picoseconds forward_end;     // EF: the last stage's output is complete (before the transfer)
  Picoseconds backward_start;  // EB: the first op of the last stage starts
};

struct PlacedPipeline {
  std::vector<PlacedMicroBatch> micro_batches;  // in order of forward execution
};

struct PlacedEncoder {
  planner::Split split;
  std::vector<PlacedPipeline> pipelines;  // by encoder pipeline of one LLM pipeline
  std::vector<std::vector<Interval>> gathers, reductions;  // as in EncoderSync, by encoder stage;
                                                           // the same on all blocks
};

// Shares, not percent.
struct Efficiency {
  // Share of the encoders' time (kernels and exposed collectives, over all lanes) that lies inside
  // bubbles of the LLM run alone: before its first start, after its last end until it would have
  // reduced its last gradient (the optimizer is no bubble), or
  // between its kernels. Decision 11 of the calibration notes.
  double work = 0;
  double time = 0;  // 1 - (latency - T_llm) / (encoder time of the busiest lane)
};

struct Result {
  std::vector<PlacedEncoder> encoders;  // as Problem::encoders
  Picoseconds delta_f;                  // the LLM starts so much later than alone
  Picoseconds delta_b;                  // and what comes after it ends so much later still
  Picoseconds latency;                  // T_llm + delta_f + delta_b: the predicted step
  Efficiency coarse, fine;
  Picoseconds coarse_latency;  // before anything was moved into interior slots
  std::int64_t splits_evaluated = 0;
};

// Lower bounds for one problem. All are at least T_llm.
struct Bounds {
  Picoseconds work;  // (LLM + encoder compute) / GPUs, and the busiest stage's own
  // Rigid LLM timeline: idle compute capacity before each F_i and after each B_i must hold the
  // encoder kernels that belong there, as if they could be cut at will and moved between lanes.
  Picoseconds fluid;
};

}  // namespace optimus::bubble
