#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"

namespace optimus::ir {
namespace {

Schedule World(int dp, int pp, int tp, int gpus_per_node) {
  Schedule schedule;
  schedule.world = {dp, pp, tp};
  schedule.gpus_per_node = gpus_per_node;
  return schedule;
}

// The first two stages, both ends, and two in the middle.
void AddPairs(const Parallelism& world, const Group& group, std::vector<Group>& groups) {
  if (!group.over_pp || world.pp == 1) return;
  std::set<std::array<std::int32_t, 2>> pairs{{0, 1}, {0, world.pp - 1}};
  if (world.pp > 3) pairs.insert({{1, world.pp - 2}, {world.pp / 3, world.pp / 2}});
  for (const std::array<std::int32_t, 2>& pair : pairs) {
    groups.push_back(group);
    groups.back().pp_pair = pair;
  }
}

// All extents of a group over these axes, with one lane per rank: what is not allowed there is not
// allowed anywhere.
std::vector<Group> AllGroups(const Parallelism& world, int axes) {
  std::vector<Group> groups;
  const Group group{"g", (axes & 1) != 0, (axes & 2) != 0, (axes & 4) != 0};
  for (int p = 0; p <= (group.over_pp ? world.pp : 0); ++p) {
    if (p > 0 && world.pp % p != 0) continue;
    for (int b = 0; b <= (group.over_tp ? world.tp : 0); ++b) {
      if (b > 0 && world.tp % b != 0) continue;
      for (const bool block : {false, true}) {
        if (block && b == 0) continue;
        groups.push_back(group);
        groups.back().pp_stride = p;
        (block ? groups.back().tp_block : groups.back().tp_stride) = b;
      }
    }
  }
  AddPairs(world, group, groups);
  return groups;
}

// By counting: ranks are put into groups by their coordinates on the axes the group is not over.
GroupShape CountedShape(const Schedule& schedule, const Group& group) {
  const Parallelism& world = schedule.world;
  std::map<std::tuple<int, int, int>, std::map<int, int>> nodes;  // group -> node -> ranks
  for (int rank = 0; rank < world.gpus(); ++rank) {
    const int t = rank % world.tp;
    const int d = rank / world.tp % world.dp;
    const int s = rank / world.tp / world.dp;
    if (group.paired() && s != group.pp_pair[0] && s != group.pp_pair[1]) continue;
    const int stage_class = group.pp_stride > 0 ? s % group.pp_stride : 0;
    int tensor_class = 0;
    if (group.tp_block > 0) tensor_class = t / group.tp_block;
    if (group.tp_stride > 0) tensor_class = t % group.tp_stride;
    ++nodes[{group.over_pp ? stage_class : s, group.over_dp ? 0 : d,
             group.over_tp ? tensor_class : t}][rank / schedule.gpus_per_node];
  }
  GroupShape shape{0, world.gpus()};
  for (const auto& [key, by_node] : nodes) {
    shape.ranks = 0;
    for (const auto& [node, ranks] : by_node) {
      shape.ranks += ranks;
      shape.ranks_per_node = std::min(shape.ranks_per_node, ranks);
    }
  }
  return shape;
}

void CompareWithCounting(Schedule schedule, int axes) {
  schedule.lanes = schedule.world.tp;
  const Parallelism& world = schedule.world;
  for (const Group& group : AllGroups(world, axes)) {
    const GroupShape expected = CountedShape(schedule, group);
    const GroupShape actual = ShapeOf(schedule, group);
    ASSERT_EQ(actual.ranks, expected.ranks);
    ASSERT_EQ(actual.ranks_per_node, expected.ranks_per_node)
        << world.dp << " " << world.pp << " " << world.tp << " " << schedule.gpus_per_node << " "
        << axes << " " << group.pp_stride << " " << group.tp_block << " " << group.tp_stride << " "
        << group.pp_pair[0] << " " << group.pp_pair[1];
  }
}

TEST(ShapeOf, ThePapersLayout) {
  const Schedule schedule = World(48, 8, 8, 8);
  const GroupShape tp = ShapeOf(schedule, {"tp", false, false, true});
  EXPECT_EQ(tp.ranks, 8);
  EXPECT_EQ(tp.ranks_per_node, 8);
  const GroupShape dp = ShapeOf(schedule, {"dp", true, false, false});
  EXPECT_EQ(dp.ranks, 48);
  EXPECT_EQ(dp.ranks_per_node, 1);
  const GroupShape model = ShapeOf(schedule, {"model", false, true, true});
  EXPECT_EQ(model.ranks, 64);
  EXPECT_EQ(model.ranks_per_node, 8);
  EXPECT_EQ(ShapeOf(schedule, {"self", false, false, false}).ranks, 1);
}

// An encoder of TP 2 in the layout above, on every second stage.
TEST(ShapeOf, AnEncodersGroups) {
  Schedule schedule = World(48, 8, 8, 8);
  schedule.lanes = 4;
  const GroupShape tp = ShapeOf(schedule, {"encoder tp", false, false, true, 0, 2, 0});
  EXPECT_EQ(tp.ranks, 2);
  EXPECT_EQ(tp.ranks_per_node, 2);
  const GroupShape dp = ShapeOf(schedule, {"encoder dp", true, true, true, 2, 0, 2});
  EXPECT_EQ(dp.ranks, 48 * 4 * 4);
  EXPECT_EQ(dp.ranks_per_node, 4);
}

// Neighbours of the last two stages share nodes; the first and the last stage do not.
TEST(ShapeOf, APairOfStagesIsItsOwn) {
  const Schedule schedule = World(2, 4, 2, 8);
  Group pair{"pair", true, true, false};
  pair.pp_pair = {2, 3};
  EXPECT_EQ(ShapeOf(schedule, pair).ranks, 4);
  EXPECT_EQ(ShapeOf(schedule, pair).ranks_per_node, 4);
  pair.pp_pair = {0, 3};
  EXPECT_EQ(ShapeOf(schedule, pair).ranks, 4);
  EXPECT_EQ(ShapeOf(schedule, pair).ranks_per_node, 2);
}

TEST(ShapeOf, UnevenNodesTakeTheWorst) {
  // Groups of 6 over nodes of 8: the second has 2 ranks in node 0 and 4 in node 1.
  const GroupShape shape = ShapeOf(World(4, 1, 6, 8), {"tp", false, false, true});
  EXPECT_EQ(shape.ranks, 6);
  EXPECT_EQ(shape.ranks_per_node, 2);
}

TEST(ShapeOf, EqualsCountingRankByRank) {
  for (int dp = 1; dp <= 4; ++dp) {
    for (int pp = 1; pp <= 4; ++pp) {
      for (int tp = 1; tp <= 4; ++tp) {
        for (const int gpus_per_node : {1, 2, 3, 4, 8, 100}) {
          for (int axes = 0; axes < 8; ++axes) {
            CompareWithCounting(World(dp, pp, tp, gpus_per_node), axes);
          }
        }
      }
    }
  }
}

// Worlds of many periods of nodes, which are not counted rank by rank.
TEST(ShapeOf, EqualsCountingWhereItTakesAShortCut) {
  for (const auto& [dp, pp, tp] : {std::tuple{150, 2, 1},
                                   {64, 3, 3},
                                   {3, 70, 2},
                                   {1, 90, 3},
                                   {2, 3, 100},
                                   {41, 5, 4},
                                   {6, 50, 7},
                                   {1, 2, 120},
                                   {2, 48, 4},
                                   {97, 1, 6}}) {
    for (const int gpus_per_node : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 72}) {
      for (int axes = 0; axes < 8; ++axes) {
        CompareWithCounting(World(dp, pp, tp, gpus_per_node), axes);
      }
    }
  }
}

// A thousand collectives of a billion GPUs: only possible where the cost does not grow with the
// world.
TEST(ShapeOf, DoesNotWalkTheWorld) {
  const Schedule schedule = World(1 << 27, 1, 8, 8);
  for (int i = 0; i < 1000; ++i) {
    const GroupShape shape = ShapeOf(schedule, {"dp", true, false, false});
    ASSERT_EQ(shape.ranks, 1 << 27);
    ASSERT_EQ(shape.ranks_per_node, 1);
    ASSERT_EQ(ShapeOf(schedule, {"tp", false, false, true}).ranks_per_node, 8);
  }
}

SharedNodes CountedSharedNodes(const Schedule& schedule, int stage, int peer) {
  SharedNodes shared{false, true, true};
  for (int d = 0; d < schedule.world.dp; ++d) {
    for (int t = 0; t < schedule.world.tp; ++t) {
      const bool same = SameNode(schedule, stage, peer, d, t);
      shared.any |= same;
      shared.all &= same;
      shared.groups_agree &= same == SameNode(schedule, stage, peer, d, 0);
    }
  }
  return shared;
}

TEST(SharedNodesOf, EqualsCountingRankByRank) {
  for (int dp = 1; dp <= 5; ++dp) {
    for (int tp = 1; tp <= 5; ++tp) {
      for (int gpus_per_node = 1; gpus_per_node <= 40; ++gpus_per_node) {
        const Schedule schedule = World(dp, 5, tp, gpus_per_node);
        for (int stage = 0; stage < 5; ++stage) {
          for (int peer = 0; peer < 5; ++peer) {
            const SharedNodes expected = CountedSharedNodes(schedule, stage, peer);
            const SharedNodes actual = SharedNodesOf(schedule, stage, peer);
            SCOPED_TRACE(::testing::Message()
                         << dp << " " << tp << " " << gpus_per_node << " " << stage << " " << peer);
            ASSERT_EQ(actual.any, expected.any);
            ASSERT_EQ(actual.all, expected.all);
            ASSERT_EQ(actual.groups_agree, expected.groups_agree);
          }
        }
      }
    }
  }
}

SharedNodes CountedBetweenLanes(const Schedule& schedule, int stage, int peer, int lane,
                                int peer_lane) {
  const int width = LaneWidth(schedule);
  SharedNodes shared{false, true, true};
  for (int d = 0; d < schedule.world.dp; ++d) {
    const auto same = [&](int i) {
      return RankOf(schedule.world, stage, d, lane * width + i) / schedule.gpus_per_node ==
             RankOf(schedule.world, peer, d, peer_lane * width + i) / schedule.gpus_per_node;
    };
    for (int i = 0; i < width; ++i) {
      EXPECT_EQ(same(i), SameNode(schedule, stage, peer, d, lane * width + i, peer_lane));
      shared.any |= same(i);
      shared.all &= same(i);
      shared.groups_agree &= same(i) == same(0);
    }
  }
  return shared;
}

TEST(SharedNodesOf, BetweenLanesEqualsCounting) {
  for (const auto& [dp, pp, tp, lanes] :
       {std::tuple{1, 3, 4, 2}, {3, 2, 4, 4}, {5, 2, 6, 2}, {2, 3, 6, 3}, {9, 2, 2, 2}}) {
    for (int gpus_per_node = 1; gpus_per_node <= 30; ++gpus_per_node) {
      Schedule schedule = World(dp, pp, tp, gpus_per_node);
      schedule.lanes = lanes;
      for (int at = 0; at < pp * pp * lanes * lanes; ++at) {
        const int stage = at % pp, peer = at / pp % pp;
        const int lane = at / pp / pp % lanes, peer_lane = at / pp / pp / lanes;
        const SharedNodes expected = CountedBetweenLanes(schedule, stage, peer, lane, peer_lane);
        const SharedNodes actual = SharedNodesOf(schedule, stage, peer, lane, peer_lane);
        SCOPED_TRACE(::testing::Message()
                     << dp << " " << tp << " " << lanes << " " << gpus_per_node << ": " << stage
                     << "." << lane << " to " << peer << "." << peer_lane);
        ASSERT_EQ(actual.any, expected.any);
        ASSERT_EQ(actual.all, expected.all);
        ASSERT_EQ(actual.groups_agree, expected.groups_agree);
      }
    }
  }
}

TEST(SameNode, FollowsTheRanks) {
  const Schedule schedule = World(3, 2, 2, 8);   // ranks 0-5 and 6-11
  EXPECT_TRUE(SameNode(schedule, 0, 1, 0, 0));   // 0 and 6
  EXPECT_TRUE(SameNode(schedule, 0, 1, 0, 1));   // 1 and 7
  EXPECT_FALSE(SameNode(schedule, 0, 1, 1, 0));  // 2 and 8
}

}  // namespace
}  // namespace optimus::ir
