#include "hw_profiles/protocols.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "hw_profiles/collective_cost.h"

namespace optimus::hw {
namespace {

int Rounds(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }

// In 64 bits, as the steps: groups of 2^31 - 1 ranks have a price as well.
std::int64_t NodesOf(GroupShape group) {
  return (std::int64_t{group.ranks} + group.ranks_per_node - 1) / group.ranks_per_node;
}

int CeilLog2(std::int64_t n) {
  int log = 0;
  while ((std::int64_t{1} << log) < n) ++log;
  return log;
}

Steps RingSteps(CollectiveKind kind, GroupShape group) {
  const std::int64_t nodes = NodesOf(group);
  const std::int64_t all = kind == CollectiveKind::kAllToAll ? 1 : group.ranks - 1;
  const std::int64_t between = nodes > 1 ? std::min(nodes, all) : 0;
  return {.nvlink = Rounds(kind) * (all - between), .nic = Rounds(kind) * between};
}

// A chain and a tree pass the whole buffer on, up and down: no rank keeps a slice to itself. A GPU
// of a double binary tree is a leaf in one half and has two children in the other.
CollectiveWork AsTree(const CollectiveWork& work, int ranks) {
  const double more = static_cast<double>(ranks) / (ranks - 1);
  CollectiveWork tree = work;
  tree.bytes = RoundToBytes(static_cast<double>(work.bytes.value()) * more);
  return tree;
}

TransferCost PriceWith(const HardwareProfile& profile, const CollectiveWork& work, GroupShape group,
                       Algorithm algorithm, const Protocol& protocol) {
  const bool tree = algorithm == Algorithm::kTree;
  TransferCost cost = PriceRing(profile, tree ? AsTree(work, group.ranks) : work, group);
  const double share =
      protocol.efficiency().value() * (tree ? profile.protocols().tree_efficiency().value() : 1.0);
  cost.wire_bytes = RoundToBytes(static_cast<double>(cost.wire_bytes.value()) / share);
  const Steps steps = StepsOf(work.kind, group, algorithm);
  cost.latency +=
      FromSeconds(1e-6 * (protocol.base_us().value() +
                          static_cast<double>(steps.nvlink) * protocol.nvlink_step_us().value() +
                          static_cast<double>(steps.nic) * protocol.nic_step_us().value()));
  return cost;
}

}  // namespace

Steps StepsOf(CollectiveKind kind, GroupShape group, Algorithm algorithm) {
  if (algorithm == Algorithm::kRing) return RingSteps(kind, group);
  const int in_node = std::min(group.ranks, group.ranks_per_node);
  return {.nvlink = std::int64_t{Rounds(kind)} * (in_node - 1),
          .nic = std::int64_t{Rounds(kind)} * CeilLog2(NodesOf(group))};
}

Picoseconds TimeOf(const HardwareProfile& profile, const TransferCost& cost) {
  if (cost.scope == LinkScope::kNone) return cost.latency;
  const Link& link = cost.scope == LinkScope::kNvlink ? profile.nvlink() : profile.nic();
  return cost.latency +
         TransferTime(cost.wire_bytes, BytesPerSecond(link.bandwidth_gb_per_s().value() * 1e9));
}

TransferCost PriceByProtocol(const HardwareProfile& profile, const CollectiveWork& work,
                             GroupShape group) {
  const Protocols& protocols = profile.protocols();
  if (work.kind == CollectiveKind::kAllToAll) {
    return PriceWith(profile, work, group, Algorithm::kRing, protocols.simple());
  }
  const bool trees = work.kind == CollectiveKind::kAllReduce && group.ranks > group.ranks_per_node;
  std::optional<TransferCost> best;
  // Of equals the first: rings before trees, LL before LL128 before Simple.
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    if (algorithm == Algorithm::kTree && !trees) continue;
    for (const Protocol* protocol : {&protocols.ll(), &protocols.ll128(), &protocols.simple()}) {
      const TransferCost cost = PriceWith(profile, work, group, algorithm, *protocol);
      if (!best || TimeOf(profile, cost) < TimeOf(profile, *best)) best = cost;
    }
  }
  return *best;
}

TransferCost NotBelowLeast(const HardwareProfile& profile, TransferCost cost) {
  if (!profile.has_protocols()) return cost;
  const Picoseconds least = FromSeconds(profile.protocols().least_us().value() * 1e-6);
  const Picoseconds missing = least - TimeOf(profile, cost);
  if (missing > Picoseconds(0)) cost.latency += missing;
  return cost;
}

}  // namespace optimus::hw
