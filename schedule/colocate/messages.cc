#include "schedule/colocate/messages.h"

#include <algorithm>

#include "schedule/ir/critical_path.h"

namespace optimus::colocate {
namespace {

TransferCost CostOf(const ir::Schedule& schedule, const CostModel& costs, Bytes bytes,
                    std::int32_t stage, std::int32_t lane, std::int32_t peer_stage,
                    std::int32_t peer_lane) {
  if (stage == peer_stage && lane == peer_lane) return {};
  const bool same_node = ir::SharedNodesOf(schedule, stage, peer_stage, lane, peer_lane).all;
  return costs.SendCost(bytes, same_node);
}

}  // namespace

std::int32_t LastStageOf(const planner::EncoderPlan& plan, const ir::Parallelism& world,
                         std::int32_t pipeline) {
  const std::int32_t subgroups = world.tp / plan.tensor_parallel;
  return (pipeline / subgroups + 1) * plan.pipeline_parallel - 1;
}

std::vector<LanePair> LanePairs(const ir::Schedule& schedule, const planner::EncoderPlan& plan,
                                std::int32_t pipeline) {
  const std::int32_t subgroups = schedule.world.tp / plan.tensor_parallel;
  const std::int32_t lanes_each = schedule.lanes / subgroups;
  const std::int32_t first = pipeline % subgroups * lanes_each;
  std::vector<LanePair> pairs;
  pairs.reserve(schedule.lanes);
  for (std::int32_t lane = 0; lane < schedule.lanes; ++lane) {
    pairs.push_back({first + lane / subgroups, lane});
  }
  return pairs;
}

Picoseconds MessageTime(const ir::Schedule& schedule, const CostModel& costs, Bytes bytes,
                        std::int32_t stage, std::int32_t lane, std::int32_t peer_stage,
                        std::int32_t peer_lane) {
  return UncontendedTime(costs, CostOf(schedule, costs, bytes, stage, lane, peer_stage, peer_lane));
}

Picoseconds TimeToLlm(const ir::Schedule& schedule, const CostModel& costs,
                      const planner::EncoderPlan& plan, std::int32_t pipeline, Bytes bytes) {
  const std::int32_t stage = LastStageOf(plan, schedule.world, pipeline);
  std::vector<Picoseconds> by_lane(schedule.lanes);
  for (const LanePair& pair : LanePairs(schedule, plan, pipeline)) {
    by_lane[pair.encoder_lane] +=
        MessageTime(schedule, costs, bytes, stage, pair.encoder_lane, 0, pair.llm_lane);
  }
  return *std::max_element(by_lane.begin(), by_lane.end());
}

Picoseconds TimeFromLlm(const ir::Schedule& schedule, const CostModel& costs,
                        const planner::EncoderPlan& plan, std::int32_t pipeline, Bytes bytes) {
  const std::int32_t stage = LastStageOf(plan, schedule.world, pipeline);
  std::vector<Picoseconds> latency(schedule.lanes), moving(schedule.lanes);
  for (const LanePair& pair : LanePairs(schedule, plan, pipeline)) {
    const TransferCost cost =
        CostOf(schedule, costs, bytes, 0, pair.llm_lane, stage, pair.encoder_lane);
    const Picoseconds alone = UncontendedTime(costs, cost);
    latency[pair.encoder_lane] = std::max(latency[pair.encoder_lane], cost.latency);
    moving[pair.encoder_lane] += alone - cost.latency;
  }
  Picoseconds longest;
  for (std::size_t lane = 0; lane < moving.size(); ++lane) {
    longest = std::max(longest, latency[lane] + moving[lane]);
  }
  return longest;
}

}  // namespace optimus::colocate
