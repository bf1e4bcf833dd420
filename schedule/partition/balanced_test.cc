#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>

#include "schedule/partition/partition.h"

namespace optimus::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Times = std::vector<Picoseconds>;

Times MakeTimes(const std::vector<std::int64_t>& values) {
  Times times;
  for (const std::int64_t value : values) {
    times.emplace_back(value);
  }
  return times;
}

std::int64_t Largest(const Times& times, const Boundaries& b, int stages) {
  std::int64_t largest = 0;
  for (int i = 0; i < stages; ++i) {
    std::int64_t sum = 0;
    for (int l = b[i]; l < b[i + 1]; ++l) {
      sum += times[l].value();
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

// What the documented order of preference compares: the maximum over all stages, the last boundary,
// the maximum over the stages before it, the boundary before, ...
std::vector<std::int64_t> Preference(const Times& times, const Boundaries& b) {
  std::vector<std::int64_t> key;
  for (int stages = static_cast<int>(b.size()) - 1; stages > 0; --stages) {
    key.push_back(Largest(times, b, stages));
    key.push_back(b[stages - 1]);
  }
  return key;
}

// Every partition there is, the preferred one kept.
Boundaries BruteForce(const Times& times, int stages) {
  const int layers = static_cast<int>(times.size());
  std::optional<Boundaries> best;
  Boundaries b(stages + 1);
  const auto visit = [&](const auto& self, int stage) -> void {
    if (stage == stages) {
      b[stages] = layers;
      if (!best || Preference(times, b) < Preference(times, *best)) {
        best = b;
      }
      return;
    }
    for (b[stage] = b[stage - 1] + 1; b[stage] < layers; ++b[stage]) {
      self(self, stage + 1);
    }
  };
  visit(visit, 1);
  return *best;
}

Times RandomTimes(std::mt19937_64& random, int layers, int below) {
  Times times;
  for (int i = 0; i < layers; ++i) {
    times.emplace_back(static_cast<std::int64_t>(random() % below));
  }
  return times;
}

TEST(BalancedTest, EqualsBruteForce) {
  std::mt19937_64 random(20250707);
  for (int trial = 0; trial < 300; ++trial) {
    const int layers = 1 + static_cast<int>(random() % 12);
    const int stages = 1 + static_cast<int>(random() % layers);
    // Small times make ties, and zeros, frequent.
    const Times times = RandomTimes(random, layers, trial % 2 == 0 ? 4 : 1000);
    const auto balanced = Balanced(times, stages);
    ASSERT_TRUE(balanced.ok()) << balanced.status();
    EXPECT_EQ(*balanced, BruteForce(times, stages)) << "trial " << trial;
  }
}

TEST(BalancedTest, ContiguousCompleteNoneEmpty) {
  std::mt19937_64 random(7);
  const Times times = RandomTimes(random, 200, 100'000);
  for (const int stages : {1, 2, 96, 199, 200}) {
    const auto b = Balanced(times, stages);
    ASSERT_TRUE(b.ok()) << b.status();
    ASSERT_EQ(b->size(), static_cast<std::size_t>(stages) + 1);
    EXPECT_EQ(b->front(), 0);
    EXPECT_EQ(b->back(), 200);
    for (int i = 0; i < stages; ++i) {
      EXPECT_LT((*b)[i], (*b)[i + 1]);
    }
  }
}

TEST(BalancedTest, ScaleInvariant) {
  std::mt19937_64 random(11);
  Times times = RandomTimes(random, 60, 50);
  const auto one = Balanced(times, 8);
  for (Picoseconds& time : times) {
    time = time * 1'000'000'007;
  }
  EXPECT_EQ(*Balanced(times, 8), *one);
}

// Ten equal layers on four stages: the maximum is 3 whatever is done; 2, 2, 3, 3 by the tie rule.
TEST(BalancedTest, TieRule) {
  EXPECT_THAT(*Balanced(Times(10, Picoseconds(5)), 4), ElementsAre(0, 2, 4, 7, 10));
  EXPECT_THAT(*Balanced(Times(6, Picoseconds(0)), 3), ElementsAre(0, 1, 2, 6));
}

// A short encoder layer and a long language-model layer: 3 x 2 against 2 x 3.
TEST(BalancedTest, WeighsLayers) {
  EXPECT_THAT(*Balanced(MakeTimes({2, 2, 2, 3, 3}), 2), ElementsAre(0, 3, 5));
  EXPECT_THAT(*Balanced(MakeTimes({9, 1, 1, 1, 1}), 2), ElementsAre(0, 1, 5));
}

TEST(BalancedTest, Refuses) {
  EXPECT_THAT(Balanced(MakeTimes({1, 2}), 3).status().message(),
              HasSubstr("layers: 2, fewer than the 3"));
  EXPECT_THAT(Balanced(MakeTimes({1, 2}), 0).status().message(), HasSubstr("0 is not a positive"));
  EXPECT_THAT(Balanced(MakeTimes({1, -2}), 1).status().message(), HasSubstr("layer 1: negative"));
}

}  // namespace
}  // namespace optimus::partition
