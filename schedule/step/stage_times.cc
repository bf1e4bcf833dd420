#include "schedule/step/stage_times.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "schedule/ir/critical_path.h"
#include "schedule/step/memory.h"

namespace optimus::step {
namespace {

// Every block is priced once.
class PieceTimes {
 public:
  PieceTimes(const ir::Schedule& schedule, const CostModel& costs)
      : schedule_(schedule), costs_(costs) {}

  Picoseconds Sum(const std::vector<Piece>& pieces) {
    Picoseconds sum;
    for (const Piece& piece : pieces) {
      const auto [entry, added] = times_.try_emplace(piece.block);
      if (added) entry->second = BlockTime(*piece.block, schedule_, costs_);
      sum += entry->second;
    }
    return sum;
  }

 private:
  const ir::Schedule& schedule_;
  const CostModel& costs_;
  absl::flat_hash_map<const LoweredBlock*, Picoseconds> times_;
};

// Between two stages; over the network card if any two replicas of them are on different nodes.
Picoseconds MessageTime(const ir::Schedule& schedule, const CostModel& costs, std::int32_t transfer,
                        int stage, int peer) {
  if (transfer < 0) return Picoseconds(0);
  const ir::Transfer& message = schedule.transfers[transfer];
  if (message.fixed > Picoseconds(0)) return message.fixed;
  const bool same_node = ir::SharedNodesOf(schedule, stage, peer).all;
  return UncontendedTime(costs, costs.SendCost(message.bytes, same_node));
}

}  // namespace

pipeline::SlotTimes TimesOf(const Placing& placing, const std::vector<VirtualStage>& virtual_stages,
                            const ir::Schedule& schedule, const CostModel& costs) {
  pipeline::SlotTimes times;
  PieceTimes pieces(schedule, costs);
  for (int stage = 0; stage < placing.stages; ++stage) {
    std::vector<Picoseconds> forward, data, weight;
    for (int chunk = 0; chunk < placing.chunks; ++chunk) {
      const VirtualStage& work = virtual_stages[placing.VirtualStageOf({stage, chunk})];
      forward.push_back(pieces.Sum(work.forward));
      data.push_back(pieces.Sum(work.backward_data));
      weight.push_back(pieces.Sum(work.backward_weight));
      const auto next =
          pipeline::NextPlace(placing.placement, placing.stages, placing.chunks, {stage, chunk});
      if (!next.has_value()) continue;
      for (const std::int32_t transfer : {work.edges.forward_out, work.edges.backward_in}) {
        times.communication = std::max(times.communication,
                                       MessageTime(schedule, costs, transfer, stage, next->stage));
      }
    }
    times.forward.push_back(std::move(forward));
    times.backward_data.push_back(std::move(data));
    times.backward_weight.push_back(std::move(weight));
  }
  return times;
}

double WeightShare(const Stack& stack, const ItemRanges& ranges) {
  double share = 0;
  for (std::size_t v = 0; v + 1 < ranges.size(); ++v) {
    const Bytes activations = ActivationBytes(stack, ranges[v], ranges[v + 1]);
    if (activations == Bytes(0)) continue;
    const Bytes kept = WeightGradientBytes(stack, ranges[v], ranges[v + 1]);
    share = std::max(share,
                     static_cast<double>(kept.value()) / static_cast<double>(activations.value()));
  }
  return share > 0 ? share : 1;
}

std::vector<MicroBatchBytes> MicroBatchBytesByStage(const Stack& stack, const ItemRanges& ranges,
                                                    const Placing& placing) {
  std::vector<MicroBatchBytes> bytes(placing.stages);
  for (int stage = 0; stage < placing.stages; ++stage) {
    MicroBatchBytes& most = bytes[stage];
    for (int chunk = 0; chunk < placing.chunks; ++chunk) {
      const int v = placing.VirtualStageOf({stage, chunk});
      most.activations =
          std::max(most.activations, ActivationBytes(stack, ranges[v], ranges[v + 1]));
      most.weight_gradients =
          std::max(most.weight_gradients, WeightGradientBytes(stack, ranges[v], ranges[v + 1]));
    }
    if (most.activations == Bytes(0)) most.activations = most.weight_gradients;
  }
  return bytes;
}

}  // namespace optimus::step
