#include "schedule/planner/splits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "gmock/gmock.h"

namespace optimus::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The obvious twin: every tuple, counted like an odometer, that sums up.
std::vector<Split> AllByOdometer(std::int32_t micro_batches, std::int32_t pipelines) {
  const std::int32_t smallest = micro_batches >= pipelines ? 1 : 0;
  std::vector<Split> found;
  Split split(pipelines, smallest);
  while (true) {
    if (std::accumulate(split.begin(), split.end(), 0) == micro_batches) found.push_back(split);
    std::int32_t i = pipelines - 1;
    while (i >= 0 && split[i] == micro_batches) split[i--] = smallest;
    if (i < 0) return found;
    ++split[i];
  }
}

TEST(BalancedSplit, LargerPartsFirst) {
  EXPECT_THAT(BalancedSplit(16, 8), ElementsAre(2, 2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(BalancedSplit(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(BalancedSplit(2, 4), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(BalancedSplit(0, 2), ElementsAre(0, 0));
}

TEST(ValidateSplit, SaysWhatItNeeds) {
  EXPECT_TRUE(ValidateSplit({1, 7}, 8, 2).ok());
  EXPECT_TRUE(ValidateSplit({0, 8}, 8, 2).ok());
  EXPECT_EQ(ValidateSplit({1, 6}, 8, 2).message(),
            "split [1, 6]: sums to 7; it needs 2 parts that sum to 8");
  EXPECT_THAT(std::string(ValidateSplit({8}, 8, 2).message()), HasSubstr("has 1 parts"));
  EXPECT_THAT(std::string(ValidateSplit({9, -1}, 8, 2).message()), HasSubstr("negative"));
  EXPECT_FALSE(ValidateSplit({2147483647, 2147483647, 10}, 8, 3).ok());
}

// Invariant 19; the paper, section 4.1: [1,7] ... [7,1].
TEST(CountSplits, Compositions) {
  EXPECT_EQ(CountSplits(8, 2), 7);
  EXPECT_EQ(CountSplits(32, 8), 2'629'575);
  EXPECT_EQ(CountSplits(8, 1), 1);
  EXPECT_EQ(CountSplits(8, 8), 1);
  EXPECT_EQ(CountSplits(2, 4), 10);  // with zeros: C(5, 3)
  EXPECT_EQ(CountSplits(0, 3), 1);
  EXPECT_EQ(CountSplits(2, 64), 64L * 65 / 2);
  EXPECT_EQ(CountSplits(67, 34), 7219428434016265740L);  // C(66, 33), the largest that fits
  EXPECT_EQ(CountSplits(68, 34), std::numeric_limits<std::int64_t>::max());  // C(67, 33)
  EXPECT_EQ(CountSplits(2'000'000'000, 1'000'000'000), std::numeric_limits<std::int64_t>::max());
}

TEST(ForEachSplit, IsTheOdometersListInItsOrder) {
  for (std::int32_t n = 0; n <= 7; ++n) {
    for (std::int32_t m = 1; m <= 4; ++m) {
      std::vector<Split> visited;
      ForEachSplit(n, m, [&](const Split& split) {
        visited.push_back(split);
        return true;
      });
      EXPECT_EQ(visited, AllByOdometer(n, m)) << n << " " << m;
      EXPECT_EQ(static_cast<std::int64_t>(visited.size()), CountSplits(n, m)) << n << " " << m;
    }
  }
}

TEST(ForEachSplit, StopsWhenTold) {
  int calls = 0;
  ForEachSplit(32, 8, [&](const Split&) { return ++calls < 5; });
  EXPECT_EQ(calls, 5);
}

TEST(ForEachSplit, AllOf32On8) {
  std::int64_t visited = 0;
  ForEachSplit(32, 8, [&](const Split& split) {
    visited += std::accumulate(split.begin(), split.end(), 0) == 32 ? 1 : 0;
    return true;
  });
  EXPECT_EQ(visited, 2'629'575);
}

// A pipeline's time is convex in its part: the search must then reach the best split of all.
TEST(LocalSearch, EqualsExhaustiveForTheSlowestOfUnequalPipelines) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> speed(1, 9);
  for (int round = 0; round < 200; ++round) {
    const std::int32_t n = 3 + round % 8;
    const std::int32_t m = 2 + round % 3;
    std::vector<std::int64_t> speeds(m);
    for (std::int64_t& s : speeds) s = speed(random);
    const auto cost = [&](const Split& split) {
      // The sum of squares breaks the plateaus that a maximum alone has.
      std::int64_t sum = 0;
      for (std::int32_t j = 0; j < m; ++j) sum += speeds[j] * split[j] * split[j];
      return sum;
    };
    const SplitSearch local = LocalSearch(n, m, cost);
    const SplitSearch all = ExhaustiveSearch(n, m, cost);
    EXPECT_EQ(local.cost, all.cost);
    EXPECT_EQ(all.evaluated, CountSplits(n, m));
  }
}

// Whatever the cost: never below the exhaustive search, a local minimum, each split once.
TEST(LocalSearch, EndsInALocalMinimumAndRepeatsNothing) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const std::int32_t n = round % 9;
    const std::int32_t m = 1 + round % 5;
    std::vector<std::int64_t> table(static_cast<std::size_t>(CountSplits(n, m)));
    for (std::int64_t& value : table) value = static_cast<std::int64_t>(random() % 20);
    const std::vector<Split> all = AllByOdometer(n, m);
    const auto look_up = [&](const Split& split) {
      const auto place = std::lower_bound(all.begin(), all.end(), split);
      EXPECT_TRUE(place != all.end() && *place == split);
      return table[place - all.begin()];
    };
    std::set<Split> seen;
    const SplitSearch local = LocalSearch(n, m, [&](const Split& split) {
      EXPECT_TRUE(seen.insert(split).second) << "evaluated twice";
      return look_up(split);
    });
    EXPECT_EQ(local.evaluated, static_cast<std::int64_t>(seen.size()));
    EXPECT_EQ(local.cost, look_up(local.split));
    EXPECT_GE(local.cost, ExhaustiveSearch(n, m, look_up).cost);
    for (const Split& other : all) {
      std::int32_t distance = 0;
      for (std::int32_t j = 0; j < m; ++j) distance += std::abs(other[j] - local.split[j]);
      if (distance == 2) {
        EXPECT_GE(look_up(other), local.cost);
      }
    }
  }
}

TEST(LocalSearch, TiesGoToTheFirstMove) {
  // Moving out of pipeline 0 helps by the same whoever takes it.
  const SplitSearch search =
      LocalSearch(6, 3, [](const Split& split) { return split[0] > 1 ? 10 + split[0] : 0; });
  EXPECT_THAT(search.split, ElementsAre(1, 3, 2));
}

TEST(ExhaustiveSearch, TiesGoToTheLexicographicallyFirst) {
  const SplitSearch search = ExhaustiveSearch(6, 3, [](const Split&) { return 7; });
  EXPECT_THAT(search.split, ElementsAre(1, 1, 4));
  EXPECT_EQ(search.cost, 7);
}

// 32 micro-batches on 64 pipelines: a search must stay in the thousands of evaluations.
TEST(LocalSearch, IsCheapOnManyPipelines) {
  for (const std::int32_t m : {8, 16, 32, 64}) {
    const SplitSearch search = LocalSearch(32, m, [&](const Split& split) {
      std::int64_t slowest = 0;
      for (std::int32_t j = 0; j < m; ++j) {
        slowest = std::max<std::int64_t>(slowest, std::int64_t{split[j]} * (10 + j));
      }
      return slowest;
    });
    EXPECT_LE(search.evaluated, 10L * m * m) << m;
  }
}

}  // namespace
}  // namespace optimus::planner
