#include "schedule/pipeline/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace optimus::pipeline {
namespace {

std::vector<int> VirtualStages(Placement placement, int stages, int chunk) {
  std::vector<int> result;
  result.reserve(stages);
  for (int s = 0; s < stages; ++s) result.push_back(VirtualStageOf(placement, stages, {s, chunk}));
  return result;
}

TEST(PlacementTest, WhichVirtualStagesAreWhere) {
  using ::testing::ElementsAre;
  EXPECT_THAT(VirtualStages(Placement::kLoop, 4, 1), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(VirtualStages(Placement::kV, 4, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(VirtualStages(Placement::kV, 4, 1), ElementsAre(7, 6, 5, 4));
  EXPECT_THAT(VirtualStages(Placement::kV, 4, 2), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(VirtualStages(Placement::kBidirectional, 4, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(VirtualStages(Placement::kBidirectional, 4, 1), ElementsAre(3, 2, 1, 0));
  EXPECT_EQ(VirtualStageCount(Placement::kBidirectional, 4, 2), 4);
  EXPECT_EQ(VirtualStageCount(Placement::kV, 4, 2), 8);
}

// Walking the model from its first to its last virtual stage, and back.
TEST(PlacementTest, NextAndPreviousWalkTheModel) {
  for (const Placement placement : {Placement::kLoop, Placement::kV, Placement::kBidirectional}) {
    for (int stages = 1; stages <= 5; ++stages) {
      for (const Place first : {Place{0, 0}, Place{stages - 1, 1}}) {
        if (first.chunk == 1 && placement != Placement::kBidirectional) continue;
        std::optional<Place> place = first;
        for (int v = 0; v < VirtualStageCount(placement, stages, 2); ++v) {
          ASSERT_TRUE(place.has_value());
          EXPECT_EQ(VirtualStageOf(placement, stages, *place), v);
          const std::optional<Place> next = NextPlace(placement, stages, 2, *place);
          if (next.has_value()) {
            EXPECT_EQ(PreviousPlace(placement, stages, *next), place);
          }
          place = next;
        }
        EXPECT_FALSE(place.has_value()) << ToString(placement);
        EXPECT_FALSE(PreviousPlace(placement, stages, first).has_value());
      }
    }
  }
}

}  // namespace
}  // namespace optimus::pipeline
