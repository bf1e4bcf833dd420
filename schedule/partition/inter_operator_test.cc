#include "schedule/partition/inter_operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace optimus::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Latencies and memory of every possible stage, by table.
struct Table {
  int layers = 0, stages = 0;
  std::int64_t micro_batches = 1;
  std::map<std::pair<int, int>, std::int64_t> latency;
  std::map<std::tuple<int, int, int>, bool> fits;
};

absl::StatusOr<Boundaries> Solve(const Table& t) {
  const auto latency = [&](int first, int last) {
    return Picoseconds(t.latency.at({first, last}));
  };
  const auto fits = [&](int stage, int first, int last) { return t.fits.at({stage, first, last}); };
  return InterOperator({t.layers, t.stages, t.micro_batches, latency, fits});
}

// (T, largest latency, boundaries) of a partition, or nothing where a stage does not fit.
using Key = std::tuple<std::int64_t, std::int64_t, Boundaries>;
std::optional<Key> KeyOf(const Table& t, const Boundaries& b) {
  std::int64_t sum = 0, largest = 0;
  for (int s = 0; s < t.stages; ++s) {
    if (!t.fits.at({s, b[s], b[s + 1]})) return std::nullopt;
    sum += t.latency.at({b[s], b[s + 1]});
    largest = std::max(largest, t.latency.at({b[s], b[s + 1]}));
  }
  return Key(sum + (t.micro_batches - 1) * largest, largest, b);
}

// Every partition there is.
std::optional<Boundaries> BruteForce(const Table& t) {
  std::optional<Key> best;
  Boundaries b(t.stages + 1);
  b[t.stages] = t.layers;
  const auto visit = [&](const auto& self, int stage) -> void {
    if (stage == t.stages) {
      if (b[stage - 1] >= t.layers) return;
      const auto key = KeyOf(t, b);
      if (key && (!best || *key < *best)) best = key;
      return;
    }
    for (b[stage] = b[stage - 1] + 1; b[stage] < t.layers; ++b[stage]) self(self, stage + 1);
  };
  visit(visit, 1);
  if (!best) return std::nullopt;
  return std::get<Boundaries>(*best);
}

Table RandomTable(std::mt19937_64& random, bool additive) {
  Table t;
  t.layers = 1 + static_cast<int>(random() % 9);
  t.stages = 1 + static_cast<int>(random() % t.layers);
  t.micro_batches = 1 + static_cast<std::int64_t>(random() % 6);
  const int below = random() % 2 == 0 ? 4 : 1000;  // small times make ties, and zeros, frequent
  const std::uint64_t refused = random() % 4;      // of ten stages
  std::vector<std::int64_t> layers(t.layers);
  for (std::int64_t& layer : layers) layer = static_cast<std::int64_t>(random() % below);
  for (int first = 0; first < t.layers; ++first) {
    for (int last = first + 1; last <= t.layers; ++last) {
      t.latency[{first, last}] =
          additive ? std::accumulate(layers.begin() + first, layers.begin() + last, std::int64_t{0})
                   : static_cast<std::int64_t>(random() % below);
      for (int s = 0; s < t.stages; ++s) t.fits[{s, first, last}] = random() % 10 >= refused;
    }
  }
  return t;
}

TEST(InterOperatorTest, EqualsBruteForce) {
  std::mt19937_64 random(20220711);
  int impossible = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Table t = RandomTable(random, trial % 2 == 0);
    const auto expected = BruteForce(t);
    const auto found = Solve(t);
    if (!expected) {
      ++impossible;
      EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted) << "trial " << trial;
      continue;
    }
    ASSERT_TRUE(found.ok()) << found.status() << " trial " << trial;
    EXPECT_EQ(*found, *expected) << "trial " << trial;
  }
  EXPECT_GT(impossible, 20);
  EXPECT_LT(impossible, 1000);
}

Table Additive(const std::vector<std::int64_t>& layers, int stages, std::int64_t micro_batches) {
  Table t;
  t.layers = static_cast<int>(layers.size());
  t.stages = stages;
  t.micro_batches = micro_batches;
  for (int first = 0; first < t.layers; ++first) {
    for (int last = first + 1; last <= t.layers; ++last) {
      t.latency[{first, last}] =
          std::accumulate(layers.begin() + first, layers.begin() + last, std::int64_t{0});
      for (int s = 0; s < stages; ++s) t.fits[{s, first, last}] = true;
    }
  }
  return t;
}

std::int64_t Largest(const Table& t, const Boundaries& b) { return std::get<1>(*KeyOf(t, b)); }

// Where latencies add up, their sum is the same for every partition, and only the largest counts:
// the balanced partition's.
TEST(InterOperatorTest, HasTheLargestLatencyOfTheBalancedPartition) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::int64_t> layers(20);
    for (std::int64_t& layer : layers) layer = 1 + static_cast<std::int64_t>(random() % 50);
    const Table t = Additive(layers, 1 + static_cast<int>(random() % 6), 8);
    std::vector<Picoseconds> times;
    times.reserve(layers.size());
    for (const std::int64_t layer : layers) times.emplace_back(layer);
    EXPECT_EQ(Largest(t, *Solve(t)), Largest(t, *Balanced(times, t.stages)));
  }
}

// A short pipeline prefers a small sum, a long one a small maximum.
TEST(InterOperatorTest, WeighsSumAgainstMaximum) {
  Table t = Additive({3, 3, 3, 3}, 2, 1);
  t.latency[{0, 1}] = 1;  // 1 + 9 = 10 against 6 + 6 = 12
  EXPECT_THAT(*Solve(t), ElementsAre(0, 1, 4));
  t.micro_batches = 2;  // 10 + 9 = 19 against 12 + 6 = 18
  EXPECT_THAT(*Solve(t), ElementsAre(0, 2, 4));
}

// The first stage has memory for one layer only.
TEST(InterOperatorTest, KeepsToMemory) {
  Table t = Additive({1, 1, 1, 1}, 2, 4);
  EXPECT_THAT(*Solve(t), ElementsAre(0, 2, 4));
  t.fits[{0, 0, 2}] = t.fits[{0, 0, 3}] = false;
  EXPECT_THAT(*Solve(t), ElementsAre(0, 1, 4));
  t.fits[{0, 0, 1}] = false;
  EXPECT_THAT(std::string(Solve(t).status().message()), HasSubstr("4 layers over 2 stages"));
}

TEST(InterOperatorTest, TiesPutFewerLayersFirst) {
  EXPECT_THAT(*Solve(Additive({1, 1, 1, 1, 1}, 2, 4)), ElementsAre(0, 2, 5));
  EXPECT_THAT(*Solve(Additive({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, 4)), ElementsAre(0, 1, 4, 7, 10));
}

TEST(InterOperatorTest, ScaleInvariantUpToLargeTimes) {
  std::mt19937_64 random(11);
  std::vector<std::int64_t> layers(30);
  for (std::int64_t& layer : layers) layer = static_cast<std::int64_t>(random() % 50);
  const auto one = Solve(Additive(layers, 5, 1000));
  for (std::int64_t& layer : layers) layer *= 1'000'000'000'000'000;
  EXPECT_EQ(*Solve(Additive(layers, 5, 1000)), *one);
}

TEST(InterOperatorTest, Refuses) {
  EXPECT_THAT(std::string(Solve(Additive({1, 1}, 3, 1)).status().message()),
              HasSubstr("2 layers cannot fill 3"));
  EXPECT_THAT(std::string(Solve(Additive({1, 1}, 0, 1)).status().message()), HasSubstr("0 is not"));
  const auto latency = [](int, int) { return Picoseconds(1); };
  const auto fits = [](int, int, int) { return true; };
  EXPECT_THAT(std::string(InterOperator({1025, 2, 1, latency, fits}).status().message()),
              HasSubstr("at most 1024"));
}

}  // namespace
}  // namespace optimus::partition
