#pragma once
// What a collective or message puts on one GPU's link, before any protocol inefficiency.
// Those who want prices use ProfileCostModel.

#include "base/cost_model.h"
#include "base/kernel.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

// Bytes that the busiest direction of one GPU's NVLink carries in a ring over `group`. With n =
// group.ranks and S = work.bytes: all-gather, reduce-scatter and all-to-all S (n-1)/n, all-reduce
// twice that, broadcast S.
double RingBytes(const CollectiveWork& work, int ranks);

// The same for one NIC, when the group spans nodes with k = ranks_per_node members in each. NCCL
// lays k rings, each leaving a node by another member's NIC, so a NIC carries 1/k of RingBytes. An
// all-to-all has no ring between nodes: every member sends S (n-k)/n to other nodes by its own NIC.
double NicBytes(const CollectiveWork& work, GroupShape group);

// The same for NVLink SHARP over the `ranks` of one node: the switch sums and multicasts, so an
// all-reduce costs a GPU S + S/n each way (all slices out to be summed, its own slice in; its own
// slice out to be multicast, all slices in). All-gather, reduce-scatter and broadcast: S.
double NvlsBytes(const CollectiveWork& work, int ranks);

// The collective's row of a link's table. Dies on an invalid enum value (a bug of ours).
const RingCost& RingCostOf(const Link& link, CollectiveKind kind);

// Whether the profile lets this collective use NVLink SHARP at this size.
bool NvlsAllowed(const HardwareProfile& profile, const CollectiveWork& work);

// Latency and inflated wire bytes; `bytes` is what the algorithm moves.
TransferCost PriceTransfer(double bytes, double efficiency, double latency_us, LinkScope scope);

// Over the ring, by the link's row alone: what protocols start from, and what a measured transfer
// goes on with beyond its largest size.
TransferCost PriceRing(const HardwareProfile& profile, const CollectiveWork& work,
                       GroupShape group);
TransferCost PriceSend(const HardwareProfile& profile, Bytes bytes, bool same_node);

// Over NVLink SHARP where the profile has it and it is faster, else by the protocols where it has
// those, else over the ring.
TransferCost PriceCollective(const HardwareProfile& profile, const CollectiveWork& work,
                             GroupShape group);

}  // namespace optimus::hw
