#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/runtime/world.h"

namespace optimus::executor {
namespace {

TEST(SelfWorldTest, AgreesWithItself) {
  const std::unique_ptr<World> world = MakeSelfWorld();
  EXPECT_EQ(world->rank(), 0);
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->local_size(), 1);
  EXPECT_FALSE(world->host().empty());
  EXPECT_EQ(world->launcher(), "alone");
  EXPECT_TRUE(world->Barrier().ok());
  EXPECT_THAT(world->Gather("a").value(), ::testing::ElementsAre("a"));
  EXPECT_EQ(world->Broadcast("b").value(), "b");
  EXPECT_EQ(world->clock_offset_ns(), 0);
}

TEST(SelfWorldTest, NotesComeBackInOrder) {
  const std::unique_ptr<World> world = MakeSelfWorld();
  EXPECT_FALSE(world->Poll().has_value());
  world->Post(0, "first");
  world->Post(0, "second");
  EXPECT_EQ(world->Poll()->text, "first");
  EXPECT_EQ(world->Poll()->text, "second");
  EXPECT_FALSE(world->Poll().has_value());
}

}  // namespace
}  // namespace optimus::executor
