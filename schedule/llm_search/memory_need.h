#pragma once
// What a candidate needs of a GPU's memory.

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/units.h"
#include "schedule/planner/encoder_plan.h"
#include "schedule/planner/memory.h"
#include "schedule/step/step.h"

namespace optimus::llm_search {

struct MemoryNeed {
  Bytes least;  // of the fullest GPU, with the encoder plans that need least
  // By encoder: the plans that fit beside the LLM, each encoder as if it were the only one. Of an
  // experiment with several encoders this is necessary only; planning says the rest.
  std::vector<std::vector<planner::EncoderPlan>> plans;
  bool fits = false;
};

// Encoder plans and what their stages hold, of one encoder.
using EncoderPlans = std::vector<planner::EncoderOnGpus>;

// `llm_stages`: the LLM's (or the whole pipeline's) memory by stage; several where the order of its
// pipeline is open, and one that fits will do. Micro-batches are split evenly over encoder
// pipelines, as the planner's own test of what fits does.
MemoryNeed NeedOf(absl::Span<const std::vector<step::StageMemory>> llm_stages,
                  const ir::Parallelism& world, absl::Span<const EncoderPlans> encoders,
                  Bytes capacity);

}  // namespace optimus::llm_search
