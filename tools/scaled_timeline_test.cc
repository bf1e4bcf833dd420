#include "tools/scaled_timeline.h"

#include <gtest/gtest.h>

namespace optimus::tools {
namespace {

ir::Timeline Small() {
  ir::Timeline timeline;
  timeline.step = Picoseconds(1001);
  ir::EntityAccount entity;
  entity.account.compute = Picoseconds(500);
  entity.account.optimizer = Picoseconds(333);
  entity.account.bubbles[0] = Picoseconds(67);
  entity.account.bubbles[1] = Picoseconds(101);
  timeline.entities.push_back(entity);
  timeline.spans.push_back({0, 0, Picoseconds(10), Picoseconds(20)});
  return timeline;
}

TEST(ScaledTimelineTest, EveryTimeIsMultiplied) {
  const ir::Timeline scaled = Scaled(Small(), 3);
  EXPECT_EQ(scaled.step, Picoseconds(3003));
  EXPECT_EQ(scaled.entities[0].account.compute, Picoseconds(1500));
  EXPECT_EQ(scaled.entities[0].account.optimizer, Picoseconds(999));
  EXPECT_EQ(scaled.entities[0].account.bubbles[1], Picoseconds(303));
  EXPECT_EQ(scaled.spans[0].start, Picoseconds(30));
  EXPECT_EQ(scaled.spans[0].end, Picoseconds(60));
}

TEST(ScaledTimelineTest, RoundingLeavesTheAccountWhole) {
  for (const double factor : {0.1, 0.37, 0.5, 1.0 / 3, 7.77}) {
    const ir::Timeline scaled = Scaled(Small(), factor);
    EXPECT_EQ(scaled.entities[0].account.total(), scaled.step) << factor;
  }
}

TEST(ScaledTimelineTest, OneChangesNothing) { EXPECT_EQ(Scaled(Small(), 1), Small()); }

}  // namespace
}  // namespace optimus::tools
