#pragma once
// The work of one encoder under one plan, kernel by kernel, as the bubble scheduler takes it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hw_profiles/profile.h"
#include "schedule/bubble/problem.h"
#include "schedule/ir/schedule.h"
#include "schedule/planner/encoder_plan.h"
#include "schedule/step/stack.h"
#include "schedule/step/step.h"

namespace optimus::colocate {

// What all encoders and plans of an experiment have in common. The experiment has passed its check.
struct EncoderContext {
  const step::Experiment& experiment;
  const step::Stack& stack;  // EncoderStack
  const hw::ProfileCostModel& costs;
  step::Optimus::Scheduler scheduler = step::Optimus::PAPER;
};

// The models of an experiment. Encoders are seen whole, not cut by the LLM's tensor parallelism:
// that need not suit them. Errors as step::BuildStack.
absl::StatusOr<step::Stack> EncoderStack(const step::Experiment& experiment);

// Micro-batches that hold input for encoder k, ascending.
std::vector<std::int32_t> MicroBatchesWithInput(const step::Experiment& experiment, int encoder);

// INVALID_ARGUMENT with the reason why the plan does not suit the model and its batches.
absl::Status CheckPlanFor(const EncoderContext& context, int encoder,
                          const planner::EncoderPlan& plan);

// Interns kernels, collectives and groups into `tables`, whose world, gpus_per_node and lanes must
// be set: indices of work are theirs. The plan has passed CheckPlanFor.
//
// Order within a micro-batch: layers outside, slices inside, so that the gradients of the last
// layers are complete early; the projector behind all slices; backward is the mirror image.
// PAPER: one chain; as in the LLM the host goes on to the next layer when the output of the one
// before is there. LIST: a chain for each slice, which waits for its own layers only, and messages
// between encoder stages by slice.
absl::StatusOr<bubble::EncoderWork> MakeEncoderWork(const EncoderContext& context, int encoder,
                                                    const planner::EncoderPlan& plan,
                                                    ir::Schedule& tables);

// Bytes per GPU of a message between two encoder stages, which carries one of `parts` parts of a
// micro-batch; `module` is cut by the encoder's plan.
Bytes HopBytes(const step::Stack& stack, const step::Module& module, int parts);
// Bytes per GPU of the LLM that a micro-batch is for its stage 0: the projector pools the encoder's
// tokens to the LLM's.
Bytes OutputBytes(const step::Stack& stack);

// The encoder's own data-parallel communication; empty where DP_enc is 1, without optimizer and
// under ENCODER_DP_NONE. Of a frozen encoder only the projector is gathered and reduced.
bubble::EncoderSync MakeEncoderSync(const EncoderContext& context, int encoder,
                                    const planner::EncoderPlan& plan,
                                    const step::ItemRanges& stages, ir::Schedule& tables);

// The ranks that share the work of one encoder pipeline's stage.
ir::Group EncoderTensorGroup(const std::string& name, const planner::EncoderPlan& plan,
                             const ir::Parallelism& world);
// The ranks that hold the same shard of the same encoder stage.
ir::Group EncoderDataGroup(const std::string& name, const planner::EncoderPlan& plan,
                           const ir::Parallelism& world);

}  // namespace optimus::colocate
