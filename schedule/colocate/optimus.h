#pragma once
// From an experiment of strategy OPTIMUS to ranked plans and the Schedule of the best one: model
// planner (the paper's Algorithm 1) around the bubble scheduler (Algorithm 2).

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "schedule/bubble/result.h"
#include "schedule/planner/encoder_plan.h"
#include "schedule/planner/splits.h"
#include "schedule/step/step.h"

namespace optimus::colocate {

struct PlanOptions {
  // Absent: what the experiment says (plan.optimus.scheduler).
  std::optional<step::Optimus::Scheduler> scheduler;
  bool exhaustive = false;  // all splits
};

// One combination of encoder plans (one per encoder) and LLM warm-up that fits in memory.
struct RankedPlan {
  std::vector<planner::EncoderPlan> encoders;
  std::vector<std::int32_t> pipelines;  // m, by encoder
  std::vector<planner::Split> splits;   // by encoder
  step::Plan::WarmUp warm_up = step::Plan::MEGATRON;
  Picoseconds llm_step;   // T_llm, the LLM alone
  Picoseconds predicted;  // the scheduler's latency
  Picoseconds coarse;     // before the fine phase
  Picoseconds delta_f, delta_b;
  bubble::Efficiency coarse_efficiency, fine_efficiency;
  bubble::Bounds bounds;
  // Of `predicted`: what the encoders' own data-parallel communication adds (the same plan and
  // splits without it).
  Picoseconds encoder_data_parallel;
  step::StageMemory memory;  // of the fullest GPU
};

struct DroppedPlan {
  std::vector<planner::EncoderPlan> encoders;
  std::string reason;  // "GPU memory: 93.1 GiB needed (parameters 30.2, ...), 80.0 GiB there"
};

struct OptimusPlan {
  std::vector<RankedPlan> ranked;  // best first; ties by the order of enumeration
  std::vector<DroppedPlan> dropped;
  double planning_seconds = 0;  // wall time
  std::int64_t splits_evaluated = 0;
};

// INVALID_ARGUMENT "field: ..." as BuildStep. RESOURCE_EXHAUSTED names the smallest need and the
// capacity where no plan fits in memory.
absl::StatusOr<OptimusPlan> PlanOptimus(const step::Experiment& experiment,
                                        const hw::ProfileCostModel& costs,
                                        const PlanOptions& options);

struct OptimusStep {
  step::Step step;  // its Schedule passes ir::Validate
  OptimusPlan plan;
};

// Plans, and emits the Schedule of the best plan: encoder kernels interleaved with the LLM's on the
// streams, with explicit dependencies.
absl::StatusOr<OptimusStep> BuildOptimusStep(const step::Experiment& experiment,
                                             const hw::ProfileCostModel& costs,
                                             const PlanOptions& options);

}  // namespace optimus::colocate
