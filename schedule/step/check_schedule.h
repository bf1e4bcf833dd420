#pragma once
// What each pipeline schedule asks of a plan. docs/schedules.md has the same as a table.

#include <cstdint>

#include "absl/status/status.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::step {

// Some slots compute data or weight gradients alone. CUSTOM may: its file decides.
bool SplitsBackward(Plan::PipelineSchedule schedule);
// A forward and a backward may share the stage.
bool SharesStage(Plan::PipelineSchedule schedule);
// The order is made from the stages' times and a memory limit.
bool HasMemoryLimit(Plan::PipelineSchedule schedule);

// Parts that the model is cut into: pipeline_parallel * model_chunks. Under DUALPIPE the two chunks
// of a stage belong to two copies, so pipeline_parallel.
int VirtualStages(const Plan& plan);

// Stages that hold the same layers: 2 under DUALPIPE, else 1.
int ModelCopies(const Plan& plan);
// GPUs that share the optimizer state of a parameter: its data-parallel ranks on all stages that
// hold it, or one.
std::int64_t OptimizerShards(const Plan& plan);

// model_chunks and micro_batch_group, where the schedule leaves no choice or has a usual one.
void FillScheduleDefaults(Plan& plan);

// The experiment with another schedule than the one it was written for: model_chunks as that one
// needs (INTERLEAVED keeps the plan's own, or 2), and no fields that belong to the old one.
void UseSchedule(Plan::PipelineSchedule schedule, Experiment& experiment);

// INVALID_ARGUMENT "plan.FIELD: ..." for a schedule that is missing or unknown, a number of model
// chunks that it does not have, fields of other schedules (micro_batch_group, warm_up,
// schedule_file, activation_limit_gib, profiled.together_ms, profiled.weight_share,
// profiled.memory_limit_micro_batches), profiled stages without the weight
// gradient's own time where it runs apart. UNIMPLEMENTED for the two copies of DUALPIPE under
// strategy OPTIMUS. Counts of micro-batches are MakeOrder's to check.
absl::Status CheckPipelineSchedule(const Experiment& experiment);

}  // namespace optimus::step
