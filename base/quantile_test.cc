#include "base/quantile.h"

#include <gtest/gtest.h>

#include <vector>

namespace optimus {
namespace {

using Values = std::vector<double>;

TEST(Median, OddAndEven) {
  EXPECT_EQ(Median(Values{3}), 3);
  EXPECT_EQ(Median(Values{5, 1, 2}), 2);
  EXPECT_EQ(Median(Values{4, 1, 2, 10}), 3);
}

TEST(Quantile, TypeSeven) {
  // NumPy: percentile([15, 20, 35, 40, 50], 40) is 29.
  EXPECT_NEAR(Quantile(Values{50, 40, 15, 35, 20}, 0.4), 29, 1e-12);
  EXPECT_EQ(Quantile(Values{7, 3, 5}, 0), 3);
  EXPECT_EQ(Quantile(Values{7, 3, 5}, 1), 7);
  EXPECT_EQ(Quantile(Values{1, 2, 3, 4}, 0.25), 1.75);
  EXPECT_EQ(Quantile(Values{1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_EQ(Quantile(Values{1, 2, 3, 4}, 0.75), 3.25);
}

}  // namespace
}  // namespace optimus
