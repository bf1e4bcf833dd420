#pragma once
// From an Experiment (what to train, on what, by which plan) to the Schedule of one training step,
// with the facts that a report needs.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/pipeline/order.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::step {

// Per GPU of one pipeline stage.
struct StageMemory {
  Bytes parameters;  // bf16
  Bytes gradients;   // fp32, or bf16 under plan.grad_reduce_in_bf16
  // 12 bytes a parameter; under the distributed optimizer divided by DP, and under DualPipe, where
  // two stages hold every parameter, by twice DP.
  Bytes optimizer_state;
  Bytes activations;  // kept by the pipeline schedule at its peak
  Bytes workspace;    // recomputation of one layer, logits, communication buffers
  Bytes total() const { return parameters + gradients + optimizer_state + activations + workspace; }
};

struct StageContents {
  int stage = 0, chunk = 0;
  std::string layers;  // "vit-22b 0-2", "embedding, llm 0-1"
};

struct Step {
  Experiment experiment;  // as read, defaults filled in
  ir::Schedule schedule;
  std::optional<pipeline::Order> order;  // that `schedule` follows; none without a pipeline (FSDP)
  Flops model_flops;                     // of the whole step, all GPUs (MFU); 0 without models
  Flops hardware_flops;                  // of all kernels in the schedule, all GPUs (HFU)
  std::vector<StageMemory> memory;       // by stage; zero without models
  std::vector<StageContents> contents;   // by virtual stage
  std::vector<std::string> notes;        // assumptions worth printing: uneven chunks, inferred plan
};

// Reads and checks an experiment, and fills its defaults in. Models and profiles given by a
// relative path are looked for beside the file. Errors are one line: file, field, what is wrong,
// hint. A `profile` that is not empty takes the place of hardware.profile: a name of the zoo, or a
// path from the current folder. A `schedule` takes the place of plan.schedule (UseSchedule).
absl::StatusOr<Experiment> LoadExperiment(
    const std::string& path, const std::string& profile = "",
    std::optional<Plan::PipelineSchedule> schedule = std::nullopt);
// The same of an experiment that is made in code or read by others: fills its defaults in and
// checks it. Errors name the field only.
absl::Status CompleteExperiment(Experiment& experiment);
// An experiment file as it is written: neither checked nor filled in. Paths in it become paths from
// the current folder.
absl::StatusOr<Experiment> ReadExperiment(const std::string& path);
// The profile that hardware.profile names.
absl::StatusOr<hw::HardwareProfile> LoadExperimentProfile(const Experiment& experiment);
// Builds the Schedule of one step; the result passes ir::Validate. Fills defaults and checks again,
// so that an experiment may also be made in code. INVALID_ARGUMENT or NOT_FOUND "field: ...".
absl::StatusOr<Step> BuildStep(const Experiment& experiment, const hw::ProfileCostModel& costs);

}  // namespace optimus::step
