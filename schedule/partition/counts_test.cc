#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "schedule/partition/partition.h"

namespace optimus::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EqualLayersTest, Divides) {
  const auto b = EqualLayers(12, 4, /*allow_uneven=*/false);
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_THAT(*b, ElementsAre(0, 3, 6, 9, 12));
}

TEST(EqualLayersTest, RefusesOrIsExplicitlyUneven) {
  const auto refused = EqualLayers(40, 16, false);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("40 layers do not divide over 16"));
  EXPECT_THAT(refused.status().message(), HasSubstr("allow_uneven"));
  const auto uneven = EqualLayers(40, 16, true);
  ASSERT_TRUE(uneven.ok()) << uneven.status();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ((*uneven)[i + 1] - (*uneven)[i], i < 8 ? 3 : 2);
  }
  EXPECT_EQ(uneven->back(), 40);
}

TEST(EqualLayersTest, TenLayersOnThreeStagesKeepEveryLayerOnce) {
  const auto b = EqualLayers(10, 3, true);
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_THAT(*b, ElementsAre(0, 4, 7, 10));
}

TEST(EqualLayersTest, RefusesEmptyStagesAndBadNumbers) {
  EXPECT_THAT(EqualLayers(3, 4, true).status().message(), HasSubstr("layers: 3, fewer than the 4"));
  EXPECT_THAT(EqualLayers(0, 1, true).status().message(), HasSubstr("layers: 0, fewer"));
  EXPECT_THAT(EqualLayers(4, 0, true).status().message(), HasSubstr("0 is not a positive"));
  EXPECT_THAT(EqualLayers(4, -2, true).status().message(), HasSubstr("-2 is not a positive"));
}

TEST(FromCountsTest, TakesAnyCountsThatSum) {
  const auto ten = FromCounts({4, 6, 6, 6, 6, 6, 6, 6, 6, 8}, 60);
  ASSERT_TRUE(ten.ok()) << ten.status();
  EXPECT_THAT(*ten, ElementsAre(0, 4, 10, 16, 22, 28, 34, 40, 46, 52, 60));
  const auto eight = FromCounts({4, 8, 8, 8, 8, 8, 8, 8}, 60);
  ASSERT_TRUE(eight.ok()) << eight.status();
  EXPECT_EQ(eight->size(), 9U);
  EXPECT_EQ(eight->back(), 60);
}

TEST(FromCountsTest, Refuses) {
  EXPECT_THAT(FromCounts({4, 6}, 11).status().message(), HasSubstr("sum to 10, the model has 11"));
  EXPECT_THAT(FromCounts({4, 0, 6}, 10).status().message(), HasSubstr("layer_counts[1]: 0"));
  EXPECT_THAT(FromCounts({12, -2}, 10).status().message(), HasSubstr("layer_counts[1]: -2"));
  EXPECT_THAT(FromCounts({}, 10).status().message(), HasSubstr("empty"));
  // The sum of ints may not fit in one.
  EXPECT_FALSE(FromCounts({2147483647, 2147483647, 2}, 0).ok());
}

}  // namespace
}  // namespace optimus::partition
