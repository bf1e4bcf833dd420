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

TEST(SpreadTest, InSecondsKeepsTheOrder) {
  EXPECT_EQ(InSeconds({Picoseconds(2'000'000'000'000), Picoseconds(500'000'000'000)}),
            (std::vector<double>{2, 0.5}));
}

}  // namespace
}  // namespace optimus::tools
