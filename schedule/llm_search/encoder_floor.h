#pragma once
// The least that an encoder beside the LLM takes, whatever plan it gets and whoever schedules it.

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/units.h"
#include "schedule/bubble/problem.h"
#include "schedule/colocate/encoder_work.h"
#include "schedule/planner/encoder_plan.h"

namespace optimus::llm_search {

struct EncoderFloor {
  // One micro-batch through all encoder stages, alone on its GPUs.
  Picoseconds forward, backward;
  // Kernels of one micro-batch, both directions, summed over all GPUs that take part.
  Picoseconds gpu_time;
};

// Under one plan, which has passed CheckPlanFor. `world`: of the LLM. `kernel_factor`: at most 1,
// of the fastest GPU.
absl::StatusOr<EncoderFloor> FloorOf(const colocate::EncoderContext& context, int encoder,
                                     const planner::EncoderPlan& plan, const ir::Schedule& tables,
                                     double kernel_factor);

// Each figure for itself the least of all: the plan may be any of them.
EncoderFloor Least(absl::Span<const EncoderFloor> floors);

// One micro-batch through encoder stages, `stages` in the order in which it passes them. At every
// stage p: a first part of it has passed the stages before (each of them takes at least what one
// part needs), then the stage works through all parts (longest path, sum of kernels, sum of
// collectives: the most of them), then a last part passes the stages behind.
Picoseconds LatencyFloor(absl::Span<const bubble::StageWork* const> stages);

}  // namespace optimus::llm_search
