#pragma once
// The LLM of an experiment without its encoders, as a step of its own, and what the bubble
// scheduler wants to know about it.

#include <vector>

#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "schedule/bubble/problem.h"
#include "schedule/ir/timeline.h"
#include "schedule/step/step.h"

namespace optimus::colocate {

struct LlmStep {
  step::Plan::WarmUp warm_up = step::Plan::MEGATRON;
  step::Step step;          // encoders removed, strategy PIPELINE
  ir::Timeline timeline;    // contention-free; spans of all operations
  bubble::LlmTimeline llm;  // what is idle in it
};

// One entry per warm-up to try: both for BEST, else the plan's. Errors as BuildStep.
absl::StatusOr<std::vector<LlmStep>> BuildLlmSteps(const step::Experiment& experiment,
                                                   const hw::ProfileCostModel& costs);

// `timeline` has the spans of every operation of `schedule`, a step of the LLM alone, one entity
// per stage (the critical-path runner's).
bubble::LlmTimeline MakeLlmTimeline(const ir::Schedule& schedule, const ir::Timeline& timeline);

}  // namespace optimus::colocate
