#include "executor/runtime/rank_numbers.h"

#include <gtest/gtest.h>

namespace optimus::executor {
namespace {

TEST(RankNumbersTest, OfManyTheFirstAreNamed) {
  EXPECT_EQ(RankNumbers({4}), "4");
  EXPECT_EQ(RankNumbers({0, 1, 2, 3, 4, 5, 6, 7}), "0, 1, 2, 3, 4, 5, 6, 7");
  EXPECT_EQ(RankNumbers({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST(RankRangesTest, ThreeInARowAreARange) {
  EXPECT_EQ(RankRanges({}), "");
  EXPECT_EQ(RankRanges({4}), "4");
  EXPECT_EQ(RankRanges({4, 5}), "4, 5");
  EXPECT_EQ(RankRanges({4, 5, 6}), "4-6");
  EXPECT_EQ(RankRanges({0, 1, 3, 5, 6, 7, 8, 10}), "0, 1, 3, 5-8, 10");
}

TEST(RanksTextTest, HasTheNoun) {
  EXPECT_EQ(RanksText({4}), "rank 4");
  EXPECT_EQ(RanksText({1, 2}), "ranks 1, 2");
  EXPECT_EQ(RanksText({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 0-9");
}

TEST(RankRangesTest, OfManyPiecesTheFirstAreNamed) {
  EXPECT_EQ(RankRanges({0, 2, 4, 6, 8, 10, 12, 14}), "0, 2, 4, 6, 8, 10, 12, 14");
  EXPECT_EQ(RankRanges({0, 2, 4, 6, 8, 10, 12, 14, 15, 16, 17, 19}),
            "0, 2, 4, 6, 8, 10, 12, 14-17 and 1 more");
  EXPECT_EQ(RankRanges({0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 14}),
            "0, 1, 3, 4, 6, 7, 9, 10 and 3 more");
}

}  // namespace
}  // namespace optimus::executor
