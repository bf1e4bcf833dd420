#include "executor/cuda/message_plan.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

using ir::Operation;
using ir::OperationKind;
using ir::Stream;

Operation Message(OperationKind kind, Stream stream, std::int32_t peer_stage,
                  std::int32_t peer_lane, std::int32_t message) {
  Operation op;
  op.kind = kind;
  op.stream = stream;
  op.work = 0;
  op.peer_stage = peer_stage;
  op.peer_lane = peer_lane;
  op.message = message;
  return op;
}

// 2 stages, DP 2, TP 4 in 2 lanes. Messages along the lanes in both directions, and one from lane 0
// of stage 0 to lane 1 of stage 1.
ir::Schedule TwoLanes() {
  ir::Schedule schedule;
  schedule.world = {.dp = 2, .pp = 2, .tp = 4};
  schedule.lanes = 2;
  schedule.transfers.resize(1);
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    for (std::int32_t lane = 0; lane < 2; ++lane) {
      ir::Program program;
      program.stage = stage;
      program.lane = lane;
      const bool first = stage == 0;
      program.operations = {
          Message(first ? OperationKind::kSend : OperationKind::kReceive,
                  first ? Stream::kForwardSend : Stream::kForwardReceive, 1 - stage, -1, lane),
          Message(first ? OperationKind::kReceive : OperationKind::kSend,
                  first ? Stream::kBackwardReceive : Stream::kBackwardSend, 1 - stage, -1,
                  10 + lane)};
      schedule.programs.push_back(program);
    }
  }
  schedule.programs[0].operations.push_back(
      Message(OperationKind::kSend, Stream::kEncoderSend, 1, 1, 20));
  schedule.programs[3].operations.push_back(
      Message(OperationKind::kReceive, Stream::kEncoderReceive, 0, 0, 20));
  return schedule;
}

TEST(RoutesOfMessages, FollowLanes) {
  const ir::Schedule schedule = TwoLanes();
  // Rank 5: stage 0, d = 1, t = 1: lane 0. Its peer in lane 1 of stage 1 is t = 3.
  const auto routes = RoutesOfMessages(schedule, 5);
  ASSERT_EQ(routes.size(), 3U);
  EXPECT_EQ(routes.at(0), (Route{5, 13, Stream::kForwardSend, Stream::kForwardReceive}));
  EXPECT_EQ(routes.at(10), (Route{13, 5, Stream::kBackwardSend, Stream::kBackwardReceive}));
  EXPECT_EQ(routes.at(20), (Route{5, 15, Stream::kEncoderSend, Stream::kEncoderReceive}));
}

// Both ends of a message name one route, and all ranks' routes are the Schedule's.
TEST(RoutesOfMessages, AreThoseOfTheSchedule) {
  const ir::Schedule schedule = TwoLanes();
  std::multiset<Route> ends;
  std::set<Route> routes;
  for (int rank = 0; rank < schedule.world.gpus(); ++rank) {
    for (const auto& [message, route] : RoutesOfMessages(schedule, rank)) {
      EXPECT_TRUE(route.source == rank || route.destination == rank);
      ends.insert(route);
      routes.insert(route);
    }
  }
  const auto expected = RoutesOf(schedule);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_THAT(std::vector<Route>(routes.begin(), routes.end()),
              ::testing::ElementsAreArray(*expected));
  for (const Route& route : routes) EXPECT_EQ(ends.count(route), 2U);
}

}  // namespace
}  // namespace optimus::executor::cuda
