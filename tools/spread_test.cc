#include "tools/spread.h"

#include <gtest/gtest.h>

namespace optimus::tools {
namespace {

TEST(SpreadTest, QuartilesAreThoseOfNumPy) {
  // numpy.percentile([1, 2, 3, 4], [0, 25, 50, 75, 100])
  const Spread spread = SpreadOf({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(spread.least, 1);
  EXPECT_DOUBLE_EQ(spread.first_quartile, 1.75);
  EXPECT_DOUBLE_EQ(spread.median, 2.5);
  EXPECT_DOUBLE_EQ(spread.third_quartile, 3.25);
  EXPECT_DOUBLE_EQ(spread.greatest, 4);
  EXPECT_DOUBLE_EQ(spread.relative(), 1.5 / 2.5);
}

TEST(SpreadTest, OneValueAndNone) {
  const Spread one = SpreadOf({7});
  EXPECT_EQ(one.least, 7);
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.third_quartile, 7);
  EXPECT_EQ(one.relative(), 0);
  EXPECT_EQ(SpreadOf({}).median, 0);
  EXPECT_EQ(SpreadOf({}).relative(), 0);
}

TEST(SpreadTest, OneSlowRunDoesNotMoveIt) {
  const Spread few = SpreadOf({100, 110, 90, 105, 500});
  EXPECT_EQ(few.median, 105);
  EXPECT_NEAR(few.relative(), 10.0 / 105, 1e-12);  // 110 - 100
  EXPECT_EQ(few.greatest - few.least, 410);
  std::vector<double> values(99, 10.0);
  values.push_back(1e6);
  const Spread many = SpreadOf(values);
  EXPECT_EQ(many.median, 10);
  EXPECT_EQ(many.relative(), 0);
  EXPECT_EQ(many.greatest, 1e6);
  EXPECT_EQ(SpreadOf({0, 0, 5}).relative(), 0);
}

TEST(SpreadTest, TheMedianOfStepsIsOneOfThem) {
  const Spread even = SpreadOfSteps({4, 1, 3, 2});
  EXPECT_EQ(even.median, 2);
  EXPECT_DOUBLE_EQ(even.first_quartile, 1.75);
  EXPECT_DOUBLE_EQ(even.third_quartile, 3.25);
  EXPECT_EQ(even.least, 1);
  EXPECT_EQ(even.greatest, 4);
  EXPECT_EQ(SpreadOfSteps({5, 9, 4}).median, 5);
  const Spread two = SpreadOfSteps({8, 4});
  EXPECT_EQ(two.median, 4);
  EXPECT_EQ(two.first_quartile, 4);  // not 5, above the median
  EXPECT_EQ(two.third_quartile, 7);
  EXPECT_EQ(SpreadOfSteps({}).median, 0);
}

TEST(SpreadTest, InSecondsKeepsTheOrder) {
  EXPECT_EQ(InSeconds({Picoseconds(2'000'000'000'000), Picoseconds(500'000'000'000)}),
            (std::vector<double>{2, 0.5}));
}

}  // namespace
}  // namespace optimus::tools
