#include "traces/replay/price.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace optimus::traces {
namespace {

std::optional<CollectiveKind> PricedAs(CommunicationKind kind) {
  switch (kind) {
    case CommunicationKind::kAllReduce:
      return CollectiveKind::kAllReduce;
    case CommunicationKind::kAllGather:
      return CollectiveKind::kAllGather;
    case CommunicationKind::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case CommunicationKind::kAllToAll:
      return CollectiveKind::kAllToAll;
    // A reduce is a broadcast backwards: the same bytes pass every link.
    case CommunicationKind::kBroadcast:
    case CommunicationKind::kReduce:
      return CollectiveKind::kBroadcast;
    case CommunicationKind::kUnknown:
    case CommunicationKind::kGather:
    case CommunicationKind::kScatter:
    case CommunicationKind::kBarrier:
    case CommunicationKind::kSend:
    case CommunicationKind::kReceive:
    case CommunicationKind::kSendReceive:
      return std::nullopt;
  }
  return std::nullopt;
}

// The fewest members in any node that the group touches, as the simulator counts (GroupShape).
GroupShape ShapeOf(const CommunicatorGroup& group, int gpus_per_node) {
  GroupShape shape;
  shape.ranks = static_cast<int>(group.ranks.size());
  shape.ranks_per_node = shape.ranks;
  if (gpus_per_node <= 0) return shape;
  std::map<std::int32_t, int> in_node;
  for (const std::int32_t rank : group.ranks) ++in_node[rank / gpus_per_node];
  for (const auto& [node, count] : in_node) {
    shape.ranks_per_node = std::min(shape.ranks_per_node, count);
  }
  return shape;
}

absl::StatusOr<Picoseconds> PriceOfMessage(const ReplayGraph& graph, TaskId task,
                                           const Communication& communication,
                                           const CostModel& costs) {
  const std::int32_t rank = graph.rank_of(task);
  std::int32_t peer = communication.peer;
  if (peer < 0 && communication.group >= 0) {
    const CommunicatorGroup& group =
        graph.recording.groups[static_cast<std::size_t>(communication.group)];
    if (group.ranks.size() == 2) peer = group.ranks[group.ranks[0] == rank ? 1 : 0];
  }
  if (peer < 0) return absl::InvalidArgumentError("with an unknown peer");
  const int node = costs.gpus_per_node();
  const bool same_node = node <= 0 || rank / node == peer / node;
  return UncontendedTime(costs, costs.SendCost(communication.bytes, same_node));
}

}  // namespace

absl::StatusOr<Picoseconds> PriceOf(const ReplayGraph& graph, TaskId task, const CostModel& costs) {
  const Communication& communication = *graph.communication(task);
  if (communication.kind == CommunicationKind::kUnknown) {
    return absl::InvalidArgumentError("of unknown type");
  }
  if (communication.bytes < Bytes(0)) return absl::InvalidArgumentError("of unknown size");
  if (IsPointToPoint(communication.kind)) {
    return PriceOfMessage(graph, task, communication, costs);
  }
  const std::optional<CollectiveKind> kind = PricedAs(communication.kind);
  if (!kind.has_value()) return absl::InvalidArgumentError("which no hardware profile prices");
  if (communication.group < 0) return absl::InvalidArgumentError("of an unknown group");
  const CommunicatorGroup& group =
      graph.recording.groups[static_cast<std::size_t>(communication.group)];
  if (group.ranks.empty()) return absl::InvalidArgumentError("of a group of unknown ranks");
  CollectiveWork work;
  work.kind = *kind;
  work.name = ToString(communication.kind);
  work.bytes = communication.bytes;
  return UncontendedTime(costs, costs.CollectiveCost(work, ShapeOf(group, costs.gpus_per_node())));
}

}  // namespace optimus::traces
