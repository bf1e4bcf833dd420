#pragma once
// The model planner (the paper's Algorithm 1): every combination of encoder plans that fits in
// memory, with every warm-up of the LLM, goes through the bubble scheduler.
//
// Several encoders would multiply their plans, so they are planned one after the other, the largest
// first: the next one takes its plan in what the best plans of those before it leave.

#include <vector>

#include "absl/status/statusor.h"
#include "schedule/bubble/result.h"
#include "schedule/colocate/encoder_work.h"
#include "schedule/colocate/llm_step.h"
#include "schedule/colocate/optimus.h"
#include "schedule/colocate/planned.h"

namespace optimus::colocate {

// A good plan, with the times of every operation.
struct BestPlan {
  step::Optimus::Scheduler scheduler = step::Optimus::PAPER;
  std::size_t llm = 0;                   // index of the LlmStep
  std::vector<PlannedEncoder> encoders;  // in the order in which they were scheduled
  bubble::Result result;                 // likewise
};

// True if `ranked` describes `best`.
bool IsOf(const RankedPlan& ranked, const BestPlan& best, const std::vector<LlmStep>& llms);

struct SearchPlansOptions {
  bool exhaustive = false;  // all splits
  std::size_t keep = 1;     // how many of the best to keep with all their times
};

struct SearchResult {
  OptimusPlan plan;            // planning_seconds is not filled in
  std::vector<BestPlan> best;  // the best ones by prediction, best first; at least one
};

// Errors as PlanOptimus.
absl::StatusOr<SearchResult> SearchPlans(const EncoderContext& context,
                                         const std::vector<LlmStep>& llms,
                                         const SearchPlansOptions& options);

}  // namespace optimus::colocate
