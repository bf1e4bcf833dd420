#include "validation/published/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "gtest/gtest.h"

namespace optimus::validation {
namespace {

TEST(Summarize, OddAndEven) {
  const ErrorSummary odd = Summarize({0.1, -0.3, 0.2});
  EXPECT_EQ(odd.figures, 3);
  EXPECT_DOUBLE_EQ(*odd.mean, 0.2);
  EXPECT_DOUBLE_EQ(*odd.median, 0.2);
  EXPECT_DOUBLE_EQ(*odd.largest, 0.3);
  EXPECT_DOUBLE_EQ(*odd.highest, 0.2);
  EXPECT_DOUBLE_EQ(*Summarize({0.1, -0.4, 0.2, -0.3}).median, 0.25);
  EXPECT_DOUBLE_EQ(*Summarize({-0.4, -0.1}).highest, -0.1);
}

TEST(Summarize, NothingIsNoZero) {
  const ErrorSummary none = Summarize({});
  EXPECT_EQ(none.figures, 0);
  EXPECT_FALSE(none.mean || none.median || none.largest || none.highest);
}

// The slow twin: the median as the value that minimises the sum of distances, the mean and the
// largest by their definitions.
TEST(Summarize, AsByDefinition) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> error(-100, 100);
  for (int size = 1; size <= 9; ++size) {
    std::vector<double> errors;
    double sum = 0, largest = 0;
    for (int i = 0; i < size; ++i) {
      errors.push_back(error(random) / 100.0);
      sum += std::abs(errors.back());
      largest = std::max(largest, std::abs(errors.back()));
    }
    const ErrorSummary summary = Summarize(errors);
    EXPECT_NEAR(*summary.mean, sum / size, 1e-12);
    EXPECT_DOUBLE_EQ(*summary.largest, largest);
    const auto distance = [&](double center) {
      double all = 0;
      for (const double one : errors) all += std::abs(std::abs(one) - center);
      return all;
    };
    for (const double one : errors) {
      EXPECT_LE(distance(*summary.median), distance(std::abs(one)) + 1e-12);
    }
  }
}

std::vector<Ranked> Pairs(const std::vector<std::pair<double, double>>& values) {
  std::vector<Ranked> ranked;
  ranked.reserve(values.size());
  for (const auto& [measured, simulated] : values) ranked.push_back({"x", measured, simulated});
  return ranked;
}

TEST(KendallTauB, OrderAndReverse) {
  EXPECT_DOUBLE_EQ(*KendallTauB(Pairs({{1, 10}, {2, 20}, {3, 30}})), 1);
  EXPECT_DOUBLE_EQ(*KendallTauB(Pairs({{1, 30}, {2, 20}, {3, 10}})), -1);
  // One of three pairs the other way round.
  EXPECT_DOUBLE_EQ(*KendallTauB(Pairs({{1, 10}, {2, 30}, {3, 20}})), 1.0 / 3);
}

TEST(KendallTauB, NoOrderNoValue) {
  EXPECT_FALSE(KendallTauB({}));
  EXPECT_FALSE(KendallTauB(Pairs({{1, 2}})));
  EXPECT_FALSE(KendallTauB(Pairs({{1, 2}, {1, 3}})));
}

// Who says the same of everything has missed the order.
TEST(KendallTauB, OneValueForAllIsNoOrder) {
  EXPECT_EQ(KendallTauB(Pairs({{1, 2}, {3, 2}})), 0);
  EXPECT_EQ(KendallTauB(Pairs({{1, 2}, {3, 2}, {3, 2}})), 0);
  EXPECT_FALSE(KendallTauB(Pairs({{3, 2}, {3, 2}, {3, 2}})));
}

TEST(KendallTauB, OnlyPairsOfOneKindCount) {
  EXPECT_FALSE(KendallTauB({{"a", 1, 2}, {"b", 2, 1}}));
  EXPECT_DOUBLE_EQ(*KendallTauB({{"a", 1, 2}, {"b", 5, 1}, {"a", 3, 4}, {"b", 9, 0}}), 0);
}

// The slow twin, by ranks instead of pairs: of the values sorted by (measured, simulated),
// discordant pairs are the swaps of a bubble sort by simulated, ties are counted from the sizes of
// groups.
double ByBubbleSort(std::vector<std::pair<double, double>> values) {
  std::map<double, double> measured, simulated;
  std::map<std::pair<double, double>, double> both;
  for (const auto& value : values) {
    ++measured[value.first];
    ++simulated[value.second];
    ++both[value];
  }
  const auto ties = [](const auto& counts) {
    double sum = 0;
    for (const auto& [value, count] : counts) sum += count * (count - 1) / 2;
    return sum;
  };
  std::sort(values.begin(), values.end());
  double swaps = 0;
  for (std::size_t pass = 0; pass < values.size(); ++pass) {
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      if (values[i].second <= values[i + 1].second) continue;
      std::swap(values[i], values[i + 1]);
      ++swaps;
    }
  }
  const auto n = static_cast<double>(values.size());
  const double pairs = n * (n - 1) / 2;
  const double agreement = pairs - ties(measured) - ties(simulated) + ties(both) - 2 * swaps;
  return agreement / std::sqrt((pairs - ties(measured)) * (pairs - ties(simulated)));
}

TEST(KendallTauB, AsByBubbleSort) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> few(0, 6);
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    const int count = 3 + round % 12;
    std::vector<std::pair<double, double>> values;
    values.reserve(count);
    for (int i = 0; i < count; ++i) values.emplace_back(few(random), few(random));
    const std::optional<double> tau = KendallTauB(Pairs(values));
    const double expected = ByBubbleSort(values);
    if (std::isnan(expected)) {
      EXPECT_EQ(tau.value_or(0), 0);
      continue;
    }
    ++compared;
    ASSERT_TRUE(tau);
    EXPECT_NEAR(*tau, expected, 1e-12);
  }
  EXPECT_GT(compared, 150);
}

}  // namespace
}  // namespace optimus::validation
