#pragma once
// What only a step of strategy OPTIMUS has: ranked plans, and how the step by SimGrid differs from
// the scheduler's prediction.

#include <string>
#include <vector>

#include "base/units.h"
#include "schedule/colocate/optimus.h"

namespace optimus::tools {

// One step four times; each adds one effect to the one before.
struct StepComparison {
  Picoseconds predicted;  // by the bubble scheduler
  Picoseconds alone;      // the emitted Schedule, every operation as fast as if it were alone
  Picoseconds shared;  // by SimGrid without interference: transfers share links, GPUs may be slow
  Picoseconds simulated;  // by SimGrid, as it was asked for

  Picoseconds order() const { return alone - predicted; }
  Picoseconds contention() const { return shared - alone; }
  Picoseconds interference() const { return simulated - shared; }
  double difference_percent() const {
    return 100 * (ToSeconds(simulated) / ToSeconds(predicted) - 1);
  }
};

struct OptimusReport {
  std::string scheduler;              // "paper" or "list"
  bool exhaustive = false;            // all splits were tried
  std::vector<std::string> encoders;  // names, in the order of the plans' entries
  ir::Parallelism llm;
  colocate::OptimusPlan plan;  // plan.ranked.front() is the one that was simulated
  StepComparison step;
};

// Share of the way from the coarse schedule down to the fluid bound that the plan did not go:
// (predicted - fluid) / (coarse - fluid). 0 where the coarse schedule is at the bound.
double GapLeft(const colocate::RankedPlan& plan);
// Of all plans that were scheduled: no plan that was looked at can be shorter, whatever schedules
// it.
Picoseconds LeastFluidBound(const colocate::OptimusPlan& plan);

// "PP 8 x TP 8", of several encoders "PP 8 x TP 8 + PP 4 x TP 8".
std::string PlansText(const std::vector<planner::EncoderPlan>& plans);
// "8,8", "3*2,2*6": parts that follow each other and are equal are counted.
std::string SplitText(const planner::Split& split);
std::string WarmUpText(step::Plan::WarmUp warm_up);             // "Megatron", "deferred"
const char* SchedulerName(step::Optimus::Scheduler scheduler);  // "paper", "list"

}  // namespace optimus::tools
