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

// By counting: ranks are put into groups by their coordinates on the axes the group is not over.
GroupShape CountedShape(const Schedule& schedule, const Group& group) {
  const Parallelism& world = schedule.world;
  std::map<std::tuple<int, int, int>, std::map<int, int>> nodes;  // group -> node -> ranks
  for (int rank = 0; rank < world.gpus(); ++rank) {
    const int t = rank % world.tp;
    const int d = rank / world.tp % world.dp;
    const int s = rank / world.tp / world.dp;
    ++nodes[{group.over_pp ? 0 : s, group.over_dp ? 0 : d, group.over_tp ? 0 : t}]
           [rank / schedule.gpus_per_node];
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
            const Schedule schedule = World(dp, pp, tp, gpus_per_node);
            const Group group{"g", (axes & 1) != 0, (axes & 2) != 0, (axes & 4) != 0};
            const GroupShape expected = CountedShape(schedule, group);
            const GroupShape actual = ShapeOf(schedule, group);
            ASSERT_EQ(actual.ranks, expected.ranks);
            ASSERT_EQ(actual.ranks_per_node, expected.ranks_per_node)
                << dp << " " << pp << " " << tp << " " << gpus_per_node << " " << axes;
          }
        }
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
