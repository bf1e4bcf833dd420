// Least squares against known lines and against a search over a fine grid.

#include "hw_profiles/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace optimus::hw {
namespace {

std::vector<Sample> OnALine(double intercept, double slope) {
  std::vector<Sample> samples;
  for (double amount = 1e3; amount < 1e9; amount *= 3) {
    samples.push_back({amount, intercept + slope * amount});
  }
  return samples;
}

TEST(FitLine, FindsTheLine) {
  for (const double intercept : {0.0, 1e-6, 3e-4}) {
    for (const double slope : {1e-12, 2.5e-10, 1e-8}) {
      const Line line = FitLine(OnALine(intercept, slope));
      EXPECT_NEAR(line.intercept, intercept, 1e-9 * (intercept + slope * 1e3));
      EXPECT_NEAR(line.slope, slope, 1e-9 * slope + 1e-21);
    }
  }
}

TEST(FitLine, SmallAndLargeCountAlike) {
  // A line that is 10 % off everywhere is off alike, whatever the size.
  std::vector<Sample> samples = OnALine(1e-5, 1e-10);
  for (Sample& sample : samples) sample.time *= 1.1;
  const Line line = FitLine(samples);
  EXPECT_NEAR(line.intercept, 1.1e-5, 1e-12);
  EXPECT_NEAR(line.slope, 1.1e-10, 1e-17);
}

TEST(FitLine, NeitherPartIsNegative) {
  const Line falling = FitLine(std::vector<Sample>{{1, 10}, {2, 5}});
  EXPECT_EQ(falling.slope, 0);
  // The a that makes (a/10 - 1)^2 + (a/5 - 1)^2 least: (1/10 + 1/5) / (1/100 + 1/25).
  EXPECT_NEAR(falling.intercept, 6, 1e-12);
  const Line steep = FitLine(std::vector<Sample>{{1, 1}, {2, 10}});
  EXPECT_EQ(steep.intercept, 0);
  // The b that makes (b - 1)^2 + (2 b / 10 - 1)^2 least: (1 + 0.2) / (1 + 0.04).
  EXPECT_NEAR(steep.slope, 1.2 / 1.04, 1e-12);
}

TEST(FitLine, OneAmountIsAllSlope) {
  const Line line = FitLine(std::vector<Sample>{{4, 8}, {4, 8}});
  EXPECT_EQ(line.intercept, 0);
  EXPECT_EQ(line.slope, 2);
  EXPECT_EQ(FitLine({}).slope, 0);
}

std::vector<Sample> RandomSamples(std::mt19937& random, bool floors) {
  std::uniform_real_distribution<double> value(0.2, 5);
  std::vector<Sample> samples(1 + random() % 8);
  for (Sample& sample : samples) {
    sample = {value(random), value(random), floors && random() % 2 == 0 ? value(random) : 0};
  }
  return samples;
}

// No pair of a fine grid is better.
TEST(FitLine, NothingOnAGridIsBetter) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    const std::vector<Sample> samples = RandomSamples(random, false);
    const double fitted = SquaredRelativeErrors(samples, FitLine(samples));
    const bool one = std::all_of(samples.begin(), samples.end(), [&](const Sample& s) {
      return s.amount == samples.front().amount;
    });
    for (int a = 0; a <= 60 && !one; ++a) {
      for (int b = 0; b <= 300; ++b) {
        const double sum = SquaredRelativeErrors(samples, {a * 0.1, b * 0.1});
        ASSERT_GE(sum, fitted - 1e-9) << a << " " << b;
      }
    }
  }
}

TEST(FitSlope, FindsTheSlopeAboveFloorsAndOverhead) {
  // Half of the samples are bound by their floor and say little about the slope.
  const double slope = 2e-14, overhead = 3e-6;
  std::vector<Sample> samples;
  for (double amount = 1e6; amount < 1e13; amount *= 7) {
    for (const double floor : {0.0, 2 * slope * amount}) {
      samples.push_back({amount, std::max(slope * amount, floor) + overhead, floor});
    }
  }
  EXPECT_NEAR(FitSlope(samples, overhead), slope, 1e-9 * slope);
}

TEST(FitSlope, NothingOnAGridIsBetter) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Sample> samples = RandomSamples(random, true);
    const double overhead = static_cast<double>(random() % 4) * 0.1;
    const double fitted = SquaredRelativeErrors(samples, {overhead, FitSlope(samples, overhead)});
    for (int b = 0; b <= 30000; ++b) {
      const double sum = SquaredRelativeErrors(samples, {overhead, b * 1e-3});
      ASSERT_GE(sum, fitted - 1e-9) << round << " " << b;
    }
  }
}

TEST(FitSlope, IsZeroWhereNothingGrows) {
  EXPECT_EQ(FitSlope({}, 1), 0);
  EXPECT_EQ(FitSlope(std::vector<Sample>{{1, 5}, {2, 5}}, 5), 0);
  EXPECT_EQ(FitSlope(std::vector<Sample>{{1, 5}}, 9), 0);  // quicker than the overhead
  EXPECT_EQ(FitSlope(std::vector<Sample>{{0, 5}}, 1), 0);
}

}  // namespace
}  // namespace optimus::hw
