#include "executor/emulated/emulated_pacing.h"

#include <algorithm>
#include <limits>
#include <map>

#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/group_members.h"
#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

using ir::testing::HandCosts;
using ir::testing::RandomSchedule;
using ir::testing::ScheduleBuilder;

constexpr std::int64_t kReady = 1'000'000'000;

TEST(EmulatedPacing, ScalesAndRoundsToNanoseconds) {
  const HandCosts costs;
  Kernel kernel;
  kernel.fixed = Picoseconds(1600);
  EXPECT_EQ(EmulatedPacing(costs, 1).KernelEndNs(kernel, kReady), kReady + 2);
  EXPECT_EQ(EmulatedPacing(costs, 1000).KernelEndNs(kernel, kReady), kReady + 1600);
  EXPECT_EQ(EmulatedPacing(costs, 0.1).KernelEndNs(kernel, kReady), kReady);
}

TEST(EmulatedPacing, AnAbsurdPriceIsFarAwayAndNoOverflow) {
  const HandCosts costs;
  Kernel kernel;
  kernel.fixed = Picoseconds(kLargestRounded);
  const EmulatedPacing pacing(costs, 1e9);
  const std::int64_t end = pacing.KernelEndNs(kernel, kReady);
  EXPECT_GT(end, std::int64_t{1} << 61);
  EXPECT_LT(end, std::numeric_limits<std::int64_t>::max() - kReady);
  EXPECT_GT(pacing.KernelEndNs(kernel, end), std::int64_t{1} << 61);
}

TEST(EmulatedPacing, MessagesArePricedByBytesAndNodeOrFixedOrFree) {
  ScheduleBuilder builder({1, 2, 2});
  builder.schedule().gpus_per_node = 2;
  const std::int32_t sized = builder.AddTransfer("sized", 3000, 0);
  const std::int32_t fixed = builder.AddTransfer("fixed", 3000, 7000);
  const std::int32_t free = builder.AddTransfer("free", 0, 0);
  for (const auto& [message, transfer] : std::map<int, int>{{4, sized}, {5, fixed}, {6, free}}) {
    builder.AddSend(0, ir::Stream::kForwardSend, 1, message, transfer);
    builder.AddReceive(1, ir::Stream::kForwardReceive, 0, message, transfer);
  }
  const HandCosts costs;
  EmulatedPacing pacing(costs, 1000);
  pacing.Connect(builder.schedule());
  EXPECT_EQ(pacing.MessageEndNs(4, Bytes(3000), 0, 1, kReady), kReady + 3000);
  EXPECT_EQ(pacing.MessageEndNs(4, Bytes(3000), 0, 2, kReady), kReady + 3500);  // another node
  EXPECT_EQ(pacing.MessageEndNs(5, Bytes(3000), 0, 2, kReady), kReady + 7000);
  EXPECT_EQ(pacing.MessageEndNs(6, Bytes(0), 0, 2, kReady), kReady);
}

TEST(EmulatedPacing, ForgetsTheScheduleBefore) {
  ScheduleBuilder builder({1, 2, 1});
  const std::int32_t fixed = builder.AddTransfer("fixed", 3000, 7000);
  builder.AddSend(0, ir::Stream::kForwardSend, 1, 5, fixed);
  builder.AddReceive(1, ir::Stream::kForwardReceive, 0, 5, fixed);
  const HandCosts costs;
  EmulatedPacing pacing(costs, 1000);
  EXPECT_EQ(pacing.MessageEndNs(5, Bytes(3000), 0, 1, kReady), kReady + 3000);
  pacing.Connect(builder.schedule());
  EXPECT_EQ(pacing.MessageEndNs(5, Bytes(3000), 0, 1, kReady), kReady + 7000);
  pacing.Connect(ScheduleBuilder({1, 2, 1}).Take());
  EXPECT_EQ(pacing.MessageEndNs(5, Bytes(3000), 0, 1, kReady), kReady + 3000);
}

// The twin counts members node by node, for the worst instance of the group.
GroupShape CountedShape(const ir::Schedule& schedule, const ir::Group& group) {
  GroupShape shape;
  shape.ranks_per_node = std::numeric_limits<int>::max();
  for (int stage = 0; stage < schedule.world.pp; ++stage) {
    if (!ir::HasPart(group, stage)) continue;
    for (int d = 0; d < schedule.world.dp; ++d) {
      for (int t = 0; t < schedule.world.tp; ++t) {
        const auto ranks = ir::RanksOf(schedule, ir::MembersOf(schedule, group, stage, d, t));
        std::map<int, int> in_node;
        for (const std::int32_t rank : ranks) ++in_node[rank / schedule.gpus_per_node];
        shape.ranks = static_cast<int>(ranks.size());
        for (const auto& [node, count] : in_node) {
          shape.ranks_per_node = std::min(shape.ranks_per_node, count);
        }
      }
    }
  }
  return shape;
}

TEST(EmulatedPacing, CollectivesArePricedByTheShapeOfTheirGroup) {
  const HandCosts costs;
  int several_nodes = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const ir::Schedule schedule = RandomSchedule(seed, seed % 2 == 1, seed % 3 == 0).Build(1);
    EmulatedPacing pacing(costs, 1000);
    pacing.Connect(schedule);
    const CollectiveWork work{CollectiveKind::kAllReduce, "sum", Bytes(100)};
    std::map<std::vector<std::int32_t>, std::int64_t> ends;  // the dearest group of these ranks
    for (const ir::Group& group : schedule.groups) {
      const GroupShape shape = CountedShape(schedule, group);
      const std::int64_t end = kReady + costs.CollectiveCost(work, shape).latency.value();
      several_nodes += shape.ranks_per_node < shape.ranks ? 1 : 0;
      for (int rank = 0; rank < schedule.world.gpus(); ++rank) {
        const int t = rank % schedule.world.tp;
        const int d = rank / schedule.world.tp % schedule.world.dp;
        const int stage = rank / schedule.world.tp / schedule.world.dp;
        if (!ir::HasPart(group, stage)) continue;
        std::int64_t& dearest =
            ends[ir::RanksOf(schedule, ir::MembersOf(schedule, group, stage, d, t))];
        dearest = std::max(dearest, end);
      }
    }
    for (const auto& [ranks, end] : ends) {
      EXPECT_EQ(pacing.CollectiveEndNs(work, ranks, kReady), end) << "seed " << seed;
    }
  }
  EXPECT_GT(several_nodes, 100);
}

TEST(EmulatedPacing, RanksThatAreNoGroupArePricedByWhereTheyAre) {
  const HandCosts costs;
  EmulatedPacing pacing(costs, 1000);
  const CollectiveWork work{CollectiveKind::kAllReduce, "sum", Bytes(100)};
  const std::vector<std::int32_t> ranks = {0, 1, 2, 5};
  EXPECT_EQ(pacing.CollectiveEndNs(work, ranks, kReady), kReady + 100);
  ScheduleBuilder builder({1, 1, 6});
  builder.schedule().gpus_per_node = 3;
  pacing.Connect(builder.schedule());
  // 3 in the first node, 1 in the second: priced as one a node, four nodes.
  EXPECT_EQ(pacing.CollectiveEndNs(work, ranks, kReady), kReady + 3100);
}

}  // namespace
}  // namespace optimus::executor
