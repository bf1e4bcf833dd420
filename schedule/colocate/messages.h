#pragma once
// Messages of encoder pipelines: who sends what to whom.
//
// Between encoder stages every lane sends to the same lane of the next stage. Between the last
// encoder stage and LLM stage 0 the encoder's TP_enc ranks hold a micro-batch in larger parts than
// the LLM's TP ranks: each encoder lane serves TP / TP_enc lanes of the LLM, with one message each;
// those that are the same lane of the same stage exchange nothing.

#include <cstdint>
#include <vector>

#include "base/cost_model.h"
#include "base/units.h"
#include "schedule/ir/schedule.h"
#include "schedule/planner/encoder_plan.h"

namespace optimus::colocate {

// A lane of the last encoder stage and a lane of LLM stage 0 that work for the same part of a
// micro-batch.
struct LanePair {
  std::int32_t encoder_lane = 0, llm_lane = 0;
};

// LLM stage that holds the last stage of encoder pipeline j.
std::int32_t LastStageOf(const planner::EncoderPlan& plan, const ir::Parallelism& world,
                         std::int32_t pipeline);
// By LLM lane. `schedule` has its world and lanes set.
std::vector<LanePair> LanePairs(const ir::Schedule& schedule, const planner::EncoderPlan& plan,
                                std::int32_t pipeline);

// Duration of a message of `bytes` per GPU between two lanes, over the slower link where some ranks
// share a node and others do not; 0 for one lane.
Picoseconds MessageTime(const ir::Schedule& schedule, const CostModel& costs, Bytes bytes,
                        std::int32_t stage, std::int32_t lane, std::int32_t peer_stage,
                        std::int32_t peer_lane);

// One micro-batch from the last stage of encoder pipeline j to the LLM: a lane sends its messages
// one after the other. `bytes` per GPU of the LLM.
Picoseconds TimeToLlm(const ir::Schedule& schedule, const CostModel& costs,
                      const planner::EncoderPlan& plan, std::int32_t pipeline, Bytes bytes);
// Its gradient back: messages come from all lanes at once and share the receiver's link.
Picoseconds TimeFromLlm(const ir::Schedule& schedule, const CostModel& costs,
                        const planner::EncoderPlan& plan, std::int32_t pipeline, Bytes bytes);

}  // namespace optimus::colocate
