#pragma once
// From an experiment of strategy OPTIMUS to ranked plans and the Schedule of the best one: model
// planner (the paper's Algorithm 1) around the bubble scheduler (Algorithm 2).

#include <cstdint>
#include <functional>
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
  // LIST: runs a Schedule and returns its step. Overlap slows kernels down, which no prediction
  // knows; where this is given, the best few plans by prediction, and the best of PAPER, are
  // emitted and run, and the shortest step wins. PAPER stays the paper's algorithm: the prediction
  // decides.
  std::function<absl::StatusOr<Picoseconds>(const ir::Schedule&)> judge;
};

// One combination of encoder plans (one per encoder) and LLM warm-up that fits in memory.
struct RankedPlan {
  std::vector<planner::EncoderPlan> encoders;
  std::vector<std::int32_t> pipelines;  // m, by encoder
  std::vector<planner::Split> splits;   // by encoder
  step::Plan::WarmUp warm_up = step::Plan::MEGATRON;
  step::Optimus::Scheduler scheduler = step::Optimus::PAPER;
  Picoseconds llm_step;   // T_llm, the LLM alone
  Picoseconds predicted;  // the scheduler's latency
  Picoseconds coarse;     // before the fine phase
  Picoseconds delta_f, delta_b;
  bubble::Efficiency coarse_efficiency, fine_efficiency;
  bubble::Bounds bounds;
  std::optional<Picoseconds> judged;  // its step by PlanOptions::judge, where it was run
  // Of `predicted`: what the encoders' own data-parallel communication adds (the same plan and
  // splits without it). Of the best plans only: it takes a schedule of its own.
  std::optional<Picoseconds> encoder_data_parallel;
  step::StageMemory memory;  // of the fullest GPU
};

struct DroppedPlan {
  std::vector<planner::EncoderPlan> encoders;
  std::string reason;  // "GPU memory: 93.1 GiB needed (parameters 30.2, ...), 80.0 GiB there"
};

struct OptimusPlan {
  // Best first: those that were judged by their judged step, then all others by prediction; ties by
  // the order of enumeration.
  std::vector<RankedPlan> ranked;
  std::vector<DroppedPlan> dropped;
  double planning_seconds = 0;  // wall time, without judging
  double judging_seconds = 0;   // wall time of emitting and running the finalists
  std::int64_t splits_evaluated = 0;
};

// INVALID_ARGUMENT "field: ..." as BuildStep. RESOURCE_EXHAUSTED names the smallest need and the
// capacity where no plan fits in memory. Judges nothing: no Schedule is made.
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
