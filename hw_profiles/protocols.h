#pragma once
// Collectives by size, as NCCL prices them when it chooses (its src/graph/tuning.cc): an algorithm
// (ring, tree) says how many steps come one after another and what goes over a link, a protocol
// says what a step costs and which share of the link its data gets. The fastest pair is taken.
// Internal to hw_profiles; others use ProfileCostModel.

#include <cstdint>

#include "base/cost_model.h"
#include "base/kernel.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

enum class Algorithm : std::uint8_t {
  kRing,  // everything but all-to-all, which NCCL makes of plain messages: one step
  kTree,  // all-reduce between nodes: a chain inside every node, a double binary tree over nodes
};

// Steps on the way of the chunk that arrives last.
struct Steps {
  std::int64_t nvlink = 0, nic = 0;
};

// `group` has two ranks or more, in equal parts on its nodes. Ring over n ranks: n - 1 steps (an
// all-reduce has two rounds), of which as many cross nodes as there are nodes, where each holds
// several ranks. Tree: k - 1 steps to the root of a node of k and ceil(log2(nodes)) to the root of
// all, and back.
Steps StepsOf(CollectiveKind kind, GroupShape group, Algorithm algorithm);

// Of a profile with protocols. Ring or tree, LL, LL128 or Simple: the fastest. All-to-all: Simple.
// NVLink SHARP is not considered here.
TransferCost PriceByProtocol(const HardwareProfile& profile, const CollectiveWork& work,
                             GroupShape group);

// A call that would be over sooner than protocols.least_us waits until then. Where the profile has
// no protocols, `cost` as it is.
TransferCost NotBelowLeast(const HardwareProfile& profile, TransferCost cost);

// Uncontended.
Picoseconds TimeOf(const HardwareProfile& profile, const TransferCost& cost);

}  // namespace optimus::hw
