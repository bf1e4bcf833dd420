// Algorithms and protocols against slow twins: chunks walked around a ring and up a tree, and every
// algorithm and protocol priced by hand.

#include "hw_profiles/protocols.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

constexpr double kNvlinkGb = 100, kNicGb = 10, kEfficiency = 0.5, kTree = 0.8, kLeastUs = 6;

struct Hand {
  double efficiency, base_us, nvlink_us, nic_us;
};
constexpr Hand kLl = {0.25, 2, 1, 3}, kLl128 = {0.75, 10, 2, 5}, kSimple = {1, 20, 4, 9};

void Fill(const Hand& hand, Protocol& protocol) {
  protocol.mutable_efficiency()->set_value(hand.efficiency);
  protocol.mutable_base_us()->set_value(hand.base_us);
  protocol.mutable_nvlink_step_us()->set_value(hand.nvlink_us);
  protocol.mutable_nic_step_us()->set_value(hand.nic_us);
}

void Fill(Link& link, double gb_per_s) {
  link.mutable_bandwidth_gb_per_s()->set_value(gb_per_s);
  for (RingCost* row :
       {link.mutable_all_gather(), link.mutable_reduce_scatter(), link.mutable_all_reduce(),
        link.mutable_broadcast(), link.mutable_all_to_all(), link.mutable_send()}) {
    row->mutable_efficiency()->set_value(kEfficiency);
    row->mutable_latency_us()->set_value(1);
  }
}

HardwareProfile RoundNumbers() {
  HardwareProfile profile;
  profile.mutable_gpus_per_node()->set_value(8);
  Fill(*profile.mutable_nvlink(), kNvlinkGb);
  Fill(*profile.mutable_nic(), kNicGb);
  Protocols& protocols = *profile.mutable_protocols();
  Fill(kLl, *protocols.mutable_ll());
  Fill(kLl128, *protocols.mutable_ll128());
  Fill(kSimple, *protocols.mutable_simple());
  protocols.mutable_tree_efficiency()->set_value(kTree);
  protocols.mutable_least_us()->set_value(kLeastUs);
  return profile;
}

double Us(const HardwareProfile& profile, CollectiveKind kind, std::int64_t bytes,
          GroupShape group) {
  const ProfileCostModel model(profile);
  return ToMicroseconds(
      UncontendedTime(model, model.CollectiveCost({kind, "", Bytes(bytes)}, group)));
}

// Every chunk walked around the ring of `group`: rank i passes it to i + 1.
Steps WalkRing(GroupShape group) {
  Steps worst;
  for (int start = 0; start < group.ranks; ++start) {
    Steps steps;
    for (int hop = 0; hop < group.ranks - 1; ++hop) {
      const int from = (start + hop) % group.ranks, to = (from + 1) % group.ranks;
      const bool inside = from / group.ranks_per_node == to / group.ranks_per_node;
      ++(inside ? steps.nvlink : steps.nic);
    }
    if (steps.nic > worst.nic) worst = steps;
    if (worst.nic == 0) worst = steps;
  }
  return worst;
}

TEST(Steps, RingAsWalked) {
  for (const GroupShape group : {GroupShape{2, 2}, GroupShape{8, 8}, GroupShape{2, 1},
                                 GroupShape{48, 1}, GroupShape{16, 8}, GroupShape{12, 2}}) {
    const Steps walked = WalkRing(group);
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                      CollectiveKind::kBroadcast, CollectiveKind::kAllReduce}) {
      const int rounds = kind == CollectiveKind::kAllReduce ? 2 : 1;
      const Steps steps = StepsOf(kind, group, Algorithm::kRing);
      EXPECT_EQ(steps.nvlink, rounds * walked.nvlink) << group.ranks;
      EXPECT_EQ(steps.nic, rounds * walked.nic) << group.ranks;
    }
  }
}

// Node by node from the leaves: halves until one is left.
TEST(Steps, TreeAsWalked) {
  for (const int per_node : {1, 2, 8}) {
    for (const int nodes : {1, 2, 3, 4, 5, 17, 64}) {
      int levels = 0;
      for (int left = nodes; left > 1; left = (left + 1) / 2) ++levels;
      const Steps steps =
          StepsOf(CollectiveKind::kAllReduce, {nodes * per_node, per_node}, Algorithm::kTree);
      EXPECT_EQ(steps.nvlink, 2 * (per_node - 1));
      EXPECT_EQ(steps.nic, 2 * levels) << nodes;
    }
  }
}

TEST(Steps, AllToAllHasOne) {
  const Steps inside = StepsOf(CollectiveKind::kAllToAll, {8, 8}, Algorithm::kRing);
  EXPECT_EQ(inside.nvlink, 1);
  EXPECT_EQ(inside.nic, 0);
  const Steps between = StepsOf(CollectiveKind::kAllToAll, {16, 8}, Algorithm::kRing);
  EXPECT_EQ(between.nvlink, 0);
  EXPECT_EQ(between.nic, 1);
}

// All-reduce over n ranks, k in each node, every way written out; microseconds. NVLink (50 GB/s of
// data) is never the slower part here: k <= 4 NICs of 5 GB/s.
double AllReduceByHand(double bytes, int n, int k) {
  const int nodes = n / k;
  double best = HUGE_VAL;
  for (const Hand& p : {kLl, kLl128, kSimple}) {
    const double rate = kEfficiency * p.efficiency * 1e3 * (nodes > 1 ? kNicGb * k : kNvlinkGb);
    const int nic_hops = nodes == 1 ? 0 : std::min(nodes, n - 1);
    const double ring = 1 + p.base_us + 2 * (n - 1 - nic_hops) * p.nvlink_us +
                        2 * nic_hops * p.nic_us + 2 * bytes * (n - 1) / n / rate;
    best = std::min(best, ring);
    if (nodes == 1) continue;
    const double tree = 1 + p.base_us + 2 * (k - 1) * p.nvlink_us +
                        2 * std::ceil(std::log2(nodes)) * p.nic_us + 2 * bytes / rate / kTree;
    best = std::min(best, tree);
  }
  return std::max(best, kLeastUs);
}

TEST(Protocols, AllReduceIsTheFastestWayByHand) {
  for (const GroupShape group : {GroupShape{2, 2}, GroupShape{8, 8}, GroupShape{4, 1},
                                 GroupShape{48, 1}, GroupShape{16, 4}, GroupShape{64, 2}}) {
    for (std::int64_t bytes = 1; bytes <= std::int64_t{1} << 32; bytes *= 4) {
      const double expected =
          AllReduceByHand(static_cast<double>(bytes), group.ranks, group.ranks_per_node);
      EXPECT_NEAR(Us(RoundNumbers(), CollectiveKind::kAllReduce, bytes, group) / expected, 1, 1e-4)
          << group.ranks << " " << group.ranks_per_node << " " << bytes;
    }
  }
}

// LL, LL128 and Simple each have sizes at which nothing else is as fast; a tree has them too.
TEST(Protocols, EveryOneIsOfUse) {
  const auto with = [](auto&& edit) {
    HardwareProfile profile = RoundNumbers();
    edit(*profile.mutable_protocols());
    return profile;
  };
  const auto slow = [](Protocol& protocol) { protocol.mutable_base_us()->set_value(1e6); };
  const auto matters = [&](const HardwareProfile& without, std::int64_t bytes, GroupShape group) {
    return Us(without, CollectiveKind::kAllReduce, bytes, group) >
           Us(RoundNumbers(), CollectiveKind::kAllReduce, bytes, group);
  };
  const GroupShape node{8, 8};
  EXPECT_TRUE(matters(with([&](auto& p) { slow(*p.mutable_ll()); }), 1 << 10, node));
  EXPECT_TRUE(matters(with([&](auto& p) { slow(*p.mutable_ll128()); }), 2 << 20, node));
  EXPECT_TRUE(matters(with([&](auto& p) { slow(*p.mutable_simple()); }), 1 << 30, node));
  const auto no_trees = with([](auto& p) { p.mutable_tree_efficiency()->set_value(0.001); });
  EXPECT_TRUE(matters(no_trees, 1 << 10, {64, 1}));
  EXPECT_FALSE(matters(no_trees, 1 << 30, {64, 1}));  // a ring of large chunks wastes no bandwidth
}

TEST(Protocols, TimeNeverFallsWithTheSize) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
        CollectiveKind::kBroadcast, CollectiveKind::kAllToAll}) {
    for (const GroupShape group : {GroupShape{8, 8}, GroupShape{16, 8}, GroupShape{48, 1}}) {
      double before = 0;
      for (std::int64_t bytes = 1; bytes <= std::int64_t{1} << 33; bytes += bytes / 3 + 1) {
        const double now = Us(RoundNumbers(), kind, bytes, group);
        EXPECT_GE(now, before) << ToString(kind) << " " << bytes;
        before = now;
      }
    }
  }
}

TEST(Protocols, AllGatherAndAllToAllByHand) {
  // 7 steps of LL: 1 + 2 + 7 = 10 us, and 1024 * 7 / 8 bytes at 12.5 GB/s.
  EXPECT_NEAR(Us(RoundNumbers(), CollectiveKind::kAllGather, 1024, {8, 8}), 10.07168, 1e-4);
  // Simple, one step between nodes: 1 + 20 + 9 = 30 us; 800 MB * 15 / 16 less the own node's 7
  // / 16.
  EXPECT_NEAR(Us(RoundNumbers(), CollectiveKind::kAllToAll, 800'000'000, {16, 8}),
              30 + 800e6 * 8 / 16 / 5e3, 1e-3);
}

TEST(Protocols, NothingIsOverBeforeTheLeastTime) {
  HardwareProfile profile = RoundNumbers();
  profile.mutable_protocols()->mutable_least_us()->set_value(40);
  EXPECT_NEAR(Us(profile, CollectiveKind::kAllGather, 1024, {8, 8}), 40, 1e-6);
  EXPECT_NEAR(Us(profile, CollectiveKind::kAllGather, 1 << 30, {8, 8}),
              Us(RoundNumbers(), CollectiveKind::kAllGather, 1 << 30, {8, 8}), 1e-6);
  EXPECT_EQ(Us(profile, CollectiveKind::kAllGather, 1024, {1, 1}), 0);  // nothing to do
  // What is waited for is no data: it does not take bandwidth from others.
  const ProfileCostModel model(profile), plain(RoundNumbers());
  const CollectiveWork work{CollectiveKind::kAllGather, "", Bytes(1024)};
  EXPECT_EQ(model.CollectiveCost(work, {8, 8}).wire_bytes,
            plain.CollectiveCost(work, {8, 8}).wire_bytes);
}

TEST(Protocols, NvlsWhereItIsFaster) {
  HardwareProfile profile = RoundNumbers();
  Nvls& nvls = *profile.mutable_nvls();
  nvls.add_collectives(Nvls::ALL_REDUCE);
  nvls.mutable_efficiency()->set_value(0.9);
  nvls.mutable_latency_us()->set_value(50);
  nvls.mutable_minimum_mib()->set_value(0);
  for (std::int64_t bytes = 1; bytes <= std::int64_t{1} << 32; bytes *= 2) {
    const double by_switch = 50 + static_cast<double>(bytes) * 9 / 8 / (0.9 * kNvlinkGb * 1e3);
    const double without = Us(RoundNumbers(), CollectiveKind::kAllReduce, bytes, {8, 8});
    EXPECT_NEAR(Us(profile, CollectiveKind::kAllReduce, bytes, {8, 8}),
                std::min(by_switch, without), 1e-3);
    EXPECT_EQ(Us(profile, CollectiveKind::kAllGather, bytes, {8, 8}),
              Us(RoundNumbers(), CollectiveKind::kAllGather, bytes, {8, 8}));
  }
}

// The H100 profile of the paper has no protocols: latency and bandwidth at every size.
TEST(Protocols, WithoutThemAsBefore) {
  HardwareProfile profile = RoundNumbers();
  profile.clear_protocols();
  EXPECT_NEAR(Us(profile, CollectiveKind::kAllReduce, 8'000'000, {8, 8}), 1 + 14e6 / 50e3, 1e-6);
  EXPECT_NEAR(Us(profile, CollectiveKind::kAllReduce, 0, {48, 1}), 1, 1e-6);
  EXPECT_FALSE(LoadProfile("h100-80gb")->has_protocols());
}

}  // namespace
}  // namespace optimus::hw
