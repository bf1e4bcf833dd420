#pragma once
// A lower bound on the step of a pipeline under 1F1B or interleaved 1F1B, or any other order of
// forwards and whole backwards on looping virtual stages.

#include <vector>

#include "base/units.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/schedule.h"
#include "schedule/llm_search/slot_path.h"
#include "schedule/step/experiment.pb.h"
#include "schedule/step/placing.h"
#include "schedule/step/virtual_stages.h"

namespace optimus::llm_search {

struct PipelineWork {
  const step::Plan& plan;
  const hw::ProfileCostModel& costs;
  const ir::Schedule& tables;  // world, gpus_per_node; kernels, collectives, transfers
  const WorkTimes& times;
  const std::vector<step::VirtualStage>& virtual_stages;
  step::Placing placing;
  std::int32_t micro_batches = 0;
};

// What lies around the pipeline: the encoders beside an LLM.
struct Surroundings {
  Picoseconds before;  // no forward of virtual stage 0 starts earlier
  Picoseconds behind;  // after the last backward of virtual stage 0 at least this follows
};

struct PipelineBound {
  Picoseconds step;
  Picoseconds compute;  // mean over stages: kernels of all micro-batches
  Picoseconds tail;     // gradient norm and optimizer, which come after everything else
};

// Why no step is shorter, for every stage s:
//   1. Its first slot needs a micro-batch that has passed virtual stages 0 to s - 1 and as many
//      messages (pipeline fill), and its first kernel its own parameters (data-parallel gather).
//   2. It runs every slot of every micro-batch, one after the other: a slot cannot take less than
//      its longest path (SlotPath), tensor-parallel collectives on that path included. Of the two
//      sums, over paths from compute to compute and from collective to collective, the larger one.
//   3. The result of its last slot passes virtual stages s - 1 to 0 backwards (drain). Behind every
//      stage's last slot comes the reduction of its gradients, as far as it is exposed: all of it
//      under DP_EXPOSED, of the smallest model chunk under DP_OVERLAPPED, nothing in buckets.
//   4. Gradient norm and optimizer follow when all stages are through.
PipelineBound BoundPipeline(const PipelineWork& work, const Surroundings& around);

// Alone on its link.
Picoseconds GroupTime(const hw::ProfileCostModel& costs, const ir::Schedule& tables,
                      const ir::Group& group, const CollectiveWork& work);

}  // namespace optimus::llm_search
