#include <gtest/gtest.h>

#include <cmath>

#include "validation/compare_timelines.h"

namespace optimus::validation {
namespace {

TEST(CompareRanking, PairsThatDifferEnough) {
  const std::vector<RankedPair> pairs = CompareRanking(
      {{"megatron", 10, 11}, {"balanced", 9.9, 10.8}, {"optimus", 8, 9}, {"other", 8.5, 8}}, 0.05);
  ASSERT_EQ(pairs.size(), 5U);  // megatron and balanced: 1.9 % apart
  EXPECT_EQ(pairs[0].faster, "optimus");
  EXPECT_EQ(pairs[0].slower, "megatron");
  EXPECT_NEAR(pairs[0].measured_ratio, 11.0 / 9, 1e-12);
  EXPECT_NEAR(pairs[0].simulated_ratio, 10.0 / 8, 1e-12);
  EXPECT_TRUE(pairs[0].same);
  EXPECT_EQ(pairs[1].faster, "other");
  EXPECT_EQ(pairs[1].slower, "megatron");
  EXPECT_EQ(pairs[4].faster, "other");
  EXPECT_EQ(pairs[4].slower, "optimus");
  EXPECT_FALSE(pairs[4].same);
  EXPECT_LT(pairs[4].simulated_ratio, 1);
}

TEST(CompareRanking, TheLeastDifferenceItselfIsNotEnough) {
  EXPECT_TRUE(CompareRanking({{"a", 1, 4}, {"b", 2, 5}}, 0.25).empty());
  EXPECT_EQ(CompareRanking({{"a", 1, 4}, {"b", 2, 5}}, 0.249).size(), 1U);
}

TEST(CompareRanking, Ties) {
  // Equal measured: nothing to rank, however they were simulated.
  EXPECT_TRUE(CompareRanking({{"a", 1, 5}, {"b", 2, 5}}, 0).empty());
  // Equal simulated: the simulator does not see the difference.
  const std::vector<RankedPair> pairs = CompareRanking({{"a", 3, 6}, {"b", 3, 5}}, 0.05);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].faster, "b");
  EXPECT_EQ(pairs[0].simulated_ratio, 1);
  EXPECT_FALSE(pairs[0].same);
  EXPECT_TRUE(CompareRanking({}, 0).empty());
  EXPECT_TRUE(CompareRanking({{"a", 3, 6}}, 0).empty());
}

TEST(RelativeError, Signs) {
  EXPECT_NEAR(RelativeError(1.1, 1), 0.1, 1e-12);
  EXPECT_NEAR(RelativeError(0.9, 1), -0.1, 1e-12);
  EXPECT_EQ(RelativeError(0, 2), -1);
  EXPECT_EQ(RelativeError(0, 0), 0);
  EXPECT_TRUE(std::isinf(RelativeError(1, 0)));
}

}  // namespace
}  // namespace optimus::validation
