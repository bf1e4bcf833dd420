#include "executor/cuda/split_rounds.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Route Forward(std::int32_t source, std::int32_t destination) {
  return {source, destination, ir::Stream::kForwardSend, ir::Stream::kForwardReceive};
}

TEST(SplitRounds, NoRoutesNeedNone) { EXPECT_THAT(SplitRounds({}), IsEmpty()); }

// A pipeline of 4 stages, both directions.
TEST(SplitRounds, APipelineNeedsFew) {
  std::vector<Route> routes;
  for (std::int32_t stage = 0; stage + 1 < 4; ++stage) {
    routes.push_back(Forward(stage, stage + 1));
    routes.push_back({stage + 1, stage, ir::Stream::kBackwardSend, ir::Stream::kBackwardReceive});
  }
  EXPECT_THAT(SplitRounds(routes),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2), ElementsAre(3)));
}

TEST(SplitRounds, HoldEveryRouteOnceAndNoRankTwice) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    const auto ranks = static_cast<std::int32_t>(2 + random() % 12);
    std::set<Route> distinct;
    for (std::size_t i = 0; i < random() % 40; ++i) {
      const auto source = static_cast<std::int32_t>(random() % ranks);
      const auto destination = static_cast<std::int32_t>(random() % ranks);
      if (source != destination) distinct.insert(Forward(source, destination));
    }
    const std::vector<Route> routes(distinct.begin(), distinct.end());
    const auto rounds = SplitRounds(routes);
    std::set<std::size_t> seen;
    std::map<std::int32_t, std::size_t> of_rank;
    for (const auto& members : rounds) {
      std::set<std::int32_t> taken;
      for (const std::size_t i : members) {
        ASSERT_TRUE(seen.insert(i).second);
        ASSERT_TRUE(taken.insert(routes[i].source).second);
        ASSERT_TRUE(taken.insert(routes[i].destination).second);
        ++of_rank[routes[i].source];
        ++of_rank[routes[i].destination];
      }
    }
    ASSERT_EQ(seen.size(), routes.size());
    std::size_t busiest = 0;
    for (const auto& [rank, count] : of_rank) busiest = std::max(busiest, count);
    // A route finds each earlier round taken by a route of one of its two ranks.
    ASSERT_LE(rounds.size(), busiest == 0 ? 0 : 2 * busiest - 1);
  }
}

// 3072 ranks: stages of 384 ranks, a pipeline in both directions.
TEST(SplitRounds, ManyRanksNeedNoMoreThanFew) {
  std::vector<Route> routes;
  for (std::int32_t rank = 0; rank + 384 < 3072; ++rank) {
    routes.push_back(Forward(rank, rank + 384));
    routes.push_back({rank + 384, rank, ir::Stream::kBackwardSend, ir::Stream::kBackwardReceive});
  }
  EXPECT_LE(SplitRounds(routes).size(), 4U);
}

}  // namespace
}  // namespace optimus::executor::cuda
