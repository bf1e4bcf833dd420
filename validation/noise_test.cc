#include "validation/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace optimus::validation {
namespace {

using Values = std::vector<double>;

// The slow twin: of all 2^n ways in which n values lie below or above the median, those in which
// the interval from place `first` to its mirror holds the median.
double Coverage(int n, int first) {
  int holds = 0;
  for (int ways = 0; ways < 1 << n; ++ways) {
    const int below = __builtin_popcount(static_cast<unsigned>(ways));
    if (below > first && n - below > first) ++holds;
  }
  return static_cast<double>(holds) / (1 << n);
}

TEST(MedianInterval, IsTheNarrowestWithEnoughConfidence) {
  for (int n = 1; n <= 18; ++n) {
    Values values;
    for (int i = 0; i < n; ++i) values.push_back((i * 7) % n);  // 0 to n - 1 for n not a 7-fold
    if (n % 7 == 0) {
      for (int i = 0; i < n; ++i) values[i] = i;
    }
    int first = 0;
    while (2 * (first + 2) <= n && Coverage(n, first + 1) >= 0.95) ++first;
    const MedianInterval interval = MedianIntervalOf(values);
    EXPECT_EQ(interval.low, first) << n;
    EXPECT_EQ(interval.high, n - 1 - first) << n;
    EXPECT_NEAR(interval.confidence, Coverage(n, first), 1e-12) << n;
    EXPECT_EQ(interval.confidence >= 0.95, n >= 6) << n;
  }
}

TEST(MedianInterval, HoldsTheMedianAsOftenAsItSays) {
  // Skewed, as times are: exponential, median ln 2.
  std::mt19937 random(5);
  std::exponential_distribution<double> value(1);
  for (const std::size_t n : {6U, 13U, 30U, 500U}) {
    constexpr int kRounds = 4000;
    int holds = 0;
    double confidence = 0;
    for (int round = 0; round < kRounds; ++round) {
      Values values(n);
      for (double& v : values) v = value(random);
      const MedianInterval interval = MedianIntervalOf(values);
      confidence = interval.confidence;
      if (interval.low <= std::log(2.0) && std::log(2.0) <= interval.high) ++holds;
    }
    EXPECT_GE(confidence, 0.95);
    EXPECT_LT(confidence, 0.98);
    EXPECT_NEAR(static_cast<double>(holds) / kRounds, confidence, 0.015) << n;
  }
}

}  // namespace
}  // namespace optimus::validation
