#include "traces/group_instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optimus::traces {
namespace {

using ::testing::ElementsAre;

ir::Schedule World(std::int32_t dp, std::int32_t pp, std::int32_t tp, std::int32_t lanes = 1) {
  ir::Schedule schedule;
  schedule.world = {dp, pp, tp};
  schedule.lanes = lanes;
  return schedule;
}

CommunicatorGroup At(const ir::Schedule& schedule, const ir::Group& group, std::int32_t rank) {
  return GroupAt(schedule, group, PlaceOf(schedule.world, rank));
}

TEST(GroupInstanceTest, NamesTheCoordinatesThatMembersShare) {
  const ir::Schedule schedule = World(2, 4, 2);
  const CommunicatorGroup tp = At(schedule, {.name = "tp", .over_tp = true}, 7);
  EXPECT_EQ(tp.name, "tp of stage 1, replica 1");
  EXPECT_EQ(tp.role, "tp");
  EXPECT_EQ(tp.description, "tp");
  EXPECT_THAT(tp.ranks, ElementsAre(6, 7));
  EXPECT_EQ(tp.size, 2);
  const CommunicatorGroup dp = At(schedule, {.name = "dp", .over_dp = true}, 7);
  EXPECT_EQ(dp.name, "dp of stage 1, tensor rank 1");
  EXPECT_EQ(dp.role, "dp");
  EXPECT_THAT(dp.ranks, ElementsAre(5, 7));
}

TEST(GroupInstanceTest, SeveralAxes) {
  const ir::Schedule schedule = World(2, 4, 2);
  const CommunicatorGroup model =
      At(schedule, {.name = "model", .over_pp = true, .over_tp = true}, 1);
  EXPECT_EQ(model.name, "model of replica 0");
  EXPECT_EQ(model.role, "pp");
  EXPECT_THAT(model.ranks, ElementsAre(0, 1, 4, 5, 8, 9, 12, 13));
  const CommunicatorGroup world =
      At(schedule, {.name = "all", .over_dp = true, .over_pp = true, .over_tp = true}, 3);
  EXPECT_EQ(world.name, "all");
  EXPECT_EQ(world.role, "world");
  EXPECT_EQ(world.size, 16);
}

// A tied embedding is of the pipeline; two copies of a model, and shards at a stride, are replicas.
TEST(GroupInstanceTest, NarrowedAxes) {
  const ir::Schedule schedule = World(2, 4, 4, 4);
  const CommunicatorGroup tied =
      At(schedule, {.name = "tied", .over_pp = true, .pp_pair = {0, 3}}, 0);
  EXPECT_EQ(tied.name, "tied of stages 0 and 3, replica 0, tensor rank 0");
  EXPECT_EQ(tied.role, "pp");
  EXPECT_THAT(tied.ranks, ElementsAre(0, 24));
  const CommunicatorGroup copies =
      At(schedule, {.name = "dp 0+3", .over_dp = true, .over_pp = true, .pp_pair = {0, 3}}, 1);
  EXPECT_EQ(copies.name, "dp 0+3 of stages 0 and 3, tensor rank 1");
  EXPECT_EQ(copies.role, "dp");
  EXPECT_THAT(copies.ranks, ElementsAre(1, 5, 25, 29));
  const CommunicatorGroup block = At(schedule, {.name = "tp 2", .over_tp = true, .tp_block = 2}, 3);
  EXPECT_EQ(block.name, "tp 2 of stage 0, replica 0, tensor ranks 2 and 3");
  EXPECT_EQ(block.role, "tp");
  const CommunicatorGroup shards = At(
      schedule, {.name = "e", .over_pp = true, .over_tp = true, .pp_stride = 2, .tp_stride = 2}, 0);
  EXPECT_EQ(shards.name, "e of stages 0 and 2, replica 0, tensor ranks 0 and 2");
  EXPECT_EQ(shards.role, "dp");
}

TEST(GroupInstanceTest, ManyCoordinates) {
  const ir::Schedule schedule = World(1, 8, 8, 8);
  EXPECT_EQ(At(schedule, {.name = "e", .over_pp = true, .pp_stride = 2}, 8).name,
            "e of stages 1, 3 to 7, tensor rank 0");
  EXPECT_EQ(At(schedule, {.name = "t", .over_tp = true, .tp_block = 4}, 4).name,
            "t of stage 0, tensor ranks 4 to 7");
}

TEST(GroupInstanceTest, LowestRankTellsInstancesApart) {
  const ir::Schedule schedule = World(2, 2, 2);
  const ir::Group dp = {.name = "dp", .over_dp = true};
  EXPECT_EQ(InstanceAt(schedule, dp, PlaceOf(schedule.world, 7)).first_rank, 5);
  EXPECT_EQ(InstanceAt(schedule, dp, PlaceOf(schedule.world, 7)).members, 2);
}

// One rank: a group all the same.
TEST(GroupInstanceTest, OfOneRank) {
  const ir::Schedule schedule = World(1, 2, 1);
  const CommunicatorGroup tp = At(schedule, {.name = "tp", .over_tp = true}, 1);
  EXPECT_EQ(tp.name, "tp of stage 1");
  EXPECT_EQ(tp.role, "tp");
  EXPECT_THAT(tp.ranks, ElementsAre(1));
}

}  // namespace
}  // namespace optimus::traces
