#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "executor/runtime/communicator.h"
#include "executor/runtime/runtime.h"
#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

// Rank by rank: every send, and the receive of the same message at the rank it goes to.
std::set<Route> PlainRoutes(const ir::Schedule& schedule) {
  std::set<Route> routes;
  const ir::Parallelism& world = schedule.world;
  for (int source = 0; source < world.gpus(); ++source) {
    const RankPlace from = PlaceOf(schedule, source);
    const int width = world.tp / schedule.lanes;
    for (const ir::Operation& send : schedule.programs[from.program].operations) {
      if (send.kind != ir::OperationKind::kSend) continue;
      for (int destination = 0; destination < world.gpus(); ++destination) {
        const RankPlace to = PlaceOf(schedule, destination);
        const int lane = send.peer_lane < 0 ? from.t / width : send.peer_lane;
        if (to.stage != send.peer_stage || to.d != from.d) continue;
        if (to.t / width != lane || to.t % width != from.t % width) continue;
        for (const ir::Operation& receive : schedule.programs[to.program].operations) {
          if (receive.kind != ir::OperationKind::kReceive) continue;
          if (receive.message != send.message) continue;
          routes.insert({source, destination, send.stream, receive.stream});
        }
      }
    }
  }
  return routes;
}

// Receives of a random Schedule come in any order, so some are refused.
TEST(RoutesTest, AreThoseOfTheRanks) {
  int accepted = 0;
  int refused = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const int operations = seed % 3 == 0 ? 60 : 14;
    const ir::Schedule schedule =
        ir::testing::RandomSchedule(seed, seed % 2 == 0).Build(operations);
    const absl::StatusOr<std::vector<Route>> routes = RoutesOf(schedule);
    if (!routes.ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(routes.status()));
      ++refused;
      continue;
    }
    ++accepted;
    const std::set<Route> expected = PlainRoutes(schedule);
    EXPECT_EQ(*routes, std::vector<Route>(expected.begin(), expected.end())) << seed;
  }
  EXPECT_GE(accepted, 10);
  EXPECT_GE(refused, 5);
}

TEST(RoutesTest, OneForwardOneBackwardHasTwoBetweenNeighbours) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(3, 4, 10, 20, 0);
  const absl::StatusOr<std::vector<Route>> routes = RoutesOf(schedule);
  ASSERT_TRUE(routes.ok()) << routes.status();
  using ir::Stream;
  EXPECT_THAT(*routes,
              ::testing::ElementsAre(Route{0, 1, Stream::kForwardSend, Stream::kForwardReceive},
                                     Route{1, 0, Stream::kBackwardSend, Stream::kBackwardReceive},
                                     Route{1, 2, Stream::kForwardSend, Stream::kForwardReceive},
                                     Route{2, 1, Stream::kBackwardSend, Stream::kBackwardReceive}));
}

TEST(RoutesTest, AnOvertakenMessageIsRefused) {
  ir::testing::ScheduleBuilder builder({1, 2, 1});
  const std::int32_t a = builder.AddTransfer("a", 8, 0);
  const std::int32_t b = builder.AddTransfer("b", 16, 0);
  builder.AddSend(0, ir::Stream::kForwardSend, 1, 0, a);
  builder.AddSend(0, ir::Stream::kForwardSend, 1, 1, b);
  builder.AddReceive(1, ir::Stream::kForwardReceive, 0, 1, b);
  builder.AddReceive(1, ir::Stream::kForwardReceive, 0, 0, a);
  const absl::Status refused = RoutesOf(builder.schedule()).status();
  EXPECT_EQ(std::string(refused.message()),
            "schedule 'test': rank 1 has forward receive b from stage 0 (operation 0) before "
            "forward receive a from stage 0 (operation 1), but the messages are sent in the other "
            "order; hint: a backend that matches messages by order needs one order on both sides");
}

}  // namespace
}  // namespace optimus::executor
