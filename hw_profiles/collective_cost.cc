#include "hw_profiles/collective_cost.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "hw_profiles/protocols.h"

namespace optimus::hw {
namespace {

double Size(const CollectiveWork& work) { return static_cast<double>(work.bytes.value()); }

Nvls::Collective NvlsName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return Nvls::ALL_GATHER;
    case CollectiveKind::kReduceScatter:
      return Nvls::REDUCE_SCATTER;
    case CollectiveKind::kAllReduce:
      return Nvls::ALL_REDUCE;
    case CollectiveKind::kBroadcast:
      return Nvls::BROADCAST;
    case CollectiveKind::kAllToAll:
      return Nvls::COLLECTIVE_UNSPECIFIED;  // nothing to sum or copy
  }
  std::abort();
}

TransferCost RingInNode(const HardwareProfile& profile, const CollectiveWork& work, int ranks) {
  const RingCost& row = RingCostOf(profile.nvlink(), work.kind);
  return PriceTransfer(RingBytes(work, ranks), row.efficiency().value(), row.latency_us().value(),
                       LinkScope::kNvlink);
}

// Of the NICs' rate, what the group's rings reach for being spread over a node (SharedNics).
double SpreadEfficiency(const HardwareProfile& profile, CollectiveKind kind, GroupShape group) {
  if (!profile.has_shared_nics() || kind == CollectiveKind::kAllToAll) return 1;
  const double nics =
      profile.gpus_per_node().value() / profile.shared_nics().gpus_per_nic().value();
  const bool spread = group.ranks_per_node > 1 && group.ranks_per_node <= nics;
  return spread ? profile.shared_nics().spread_ring_efficiency().value() : 1;
}

// Between nodes. Bus bandwidth is min(NVLink, k NICs). A cost names one link, the NIC: where NVLink
// is the slower part, the bytes are inflated to last as long on the NIC.
TransferCost PriceAcrossNodes(const HardwareProfile& profile, const CollectiveWork& work,
                              GroupShape group) {
  const RingCost& row = RingCostOf(profile.nic(), work.kind);
  TransferCost cost = PriceTransfer(
      NicBytes(work, group), row.efficiency().value() * SpreadEfficiency(profile, work.kind, group),
      row.latency_us().value(), LinkScope::kNic);
  if (group.ranks_per_node == 1) return cost;
  const double nvlink_bytes = work.kind == CollectiveKind::kAllToAll
                                  ? Size(work) * (group.ranks_per_node - 1) / group.ranks
                                  : RingBytes(work, group.ranks);
  const double rate_ratio =
      profile.nic().bandwidth_gb_per_s().value() / profile.nvlink().bandwidth_gb_per_s().value();
  const double efficiency = RingCostOf(profile.nvlink(), work.kind).efficiency().value();
  const TransferCost by_nvlink =
      PriceTransfer(nvlink_bytes * rate_ratio, efficiency, 0, LinkScope::kNic);
  cost.wire_bytes = std::max(cost.wire_bytes, by_nvlink.wire_bytes);
  return cost;
}

}  // namespace

double RingBytes(const CollectiveWork& work, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (work.kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return Size(work) * others;
    case CollectiveKind::kAllReduce:
      return 2 * Size(work) * others;
    case CollectiveKind::kBroadcast:
      return Size(work);
  }
  std::abort();
}

double NicBytes(const CollectiveWork& work, GroupShape group) {
  if (work.kind == CollectiveKind::kAllToAll) {
    return Size(work) * (group.ranks - group.ranks_per_node) / group.ranks;
  }
  return RingBytes(work, group.ranks) / group.ranks_per_node;
}

double NvlsBytes(const CollectiveWork& work, int ranks) {
  return work.kind == CollectiveKind::kAllReduce ? Size(work) * (ranks + 1) / ranks : Size(work);
}

const RingCost& RingCostOf(const Link& link, CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return link.all_gather();
    case CollectiveKind::kReduceScatter:
      return link.reduce_scatter();
    case CollectiveKind::kAllReduce:
      return link.all_reduce();
    case CollectiveKind::kBroadcast:
      return link.broadcast();
    case CollectiveKind::kAllToAll:
      return link.all_to_all();
  }
  std::abort();
}

bool NvlsAllowed(const HardwareProfile& profile, const CollectiveWork& work) {
  if (!profile.has_nvls()) return false;
  const auto& list = profile.nvls().collectives();
  return std::find(list.begin(), list.end(), static_cast<int>(NvlsName(work.kind))) != list.end() &&
         Size(work) >= profile.nvls().minimum_mib().value() * 1024 * 1024;
}

TransferCost PriceTransfer(double bytes, double efficiency, double latency_us, LinkScope scope) {
  return {.latency = FromSeconds(latency_us * 1e-6),
          .wire_bytes = RoundToBytes(bytes / efficiency),
          .scope = scope};
}

TransferCost PriceRing(const HardwareProfile& profile, const CollectiveWork& work,
                       GroupShape group) {
  if (group.ranks <= group.ranks_per_node) return RingInNode(profile, work, group.ranks);
  return PriceAcrossNodes(profile, work, group);
}

TransferCost PriceSend(const HardwareProfile& profile, Bytes bytes, bool same_node) {
  const RingCost& row = same_node ? profile.nvlink().send() : profile.nic().send();
  return PriceTransfer(static_cast<double>(bytes.value()), row.efficiency().value(),
                       row.latency_us().value(), same_node ? LinkScope::kNvlink : LinkScope::kNic);
}

TransferCost PriceCollective(const HardwareProfile& profile, const CollectiveWork& work,
                             GroupShape group) {
  if (group.ranks <= 1) return {};
  TransferCost best = profile.has_protocols() ? PriceByProtocol(profile, work, group)
                                              : PriceRing(profile, work, group);
  if (group.ranks <= group.ranks_per_node && NvlsAllowed(profile, work)) {
    const TransferCost nvls =
        PriceTransfer(NvlsBytes(work, group.ranks), profile.nvls().efficiency().value(),
                      profile.nvls().latency_us().value(), LinkScope::kNvlink);
    if (TimeOf(profile, nvls) < TimeOf(profile, best)) best = nvls;
  }
  return NotBelowLeast(profile, best);
}

}  // namespace optimus::hw
