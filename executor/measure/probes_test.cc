#include "executor/measure/probes.h"

#include <set>
#include <string>
#include <vector>

#include "base/testing_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/group_members.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/validate.h"

namespace optimus::executor {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

// The contention-free runner's times, in nanoseconds for its picoseconds: the probes are Schedules
// like any other, so whoever can run them can be measured, and must be found to cost what it does.
StepTimes RunOnPaper(const ir::Schedule& schedule) {
  const ir::testing::HandCosts costs;
  const auto timeline = ir::CriticalPathRunner(costs).Run(schedule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  StepTimes times(static_cast<std::size_t>(schedule.world.gpus()));
  for (const ir::Span& span : timeline->spans) {
    // It runs one replica of each stage; the others do the same.
    const int stage = span.rank / (schedule.world.dp * schedule.world.tp);
    for (int i = 0; i < schedule.world.dp * schedule.world.tp; ++i) {
      auto& rank = times[stage * schedule.world.dp * schedule.world.tp + i];
      rank.resize(std::max<std::size_t>(rank.size(), span.operation + 1));
      rank[span.operation] = {span.start.value(), span.end.value()};
    }
  }
  return times;
}

const std::vector<ProbeWorld> kWorlds = {{1, 1}, {2, 2}, {2, 1}, {4, 2}, {4, 4},
                                         {6, 3}, {8, 4}, {8, 8}, {9, 3}, {16, 8}};

TEST(Probes, AreValidSchedules) {
  const std::vector<Kernel> kernels = {MemoryBoundKernel(10), MemoryBoundKernel(20)};
  const auto expect_valid = [](const ir::Schedule& schedule) {
    const absl::Status status = ir::Validate(schedule);
    EXPECT_TRUE(status.ok()) << status;
  };
  for (const ProbeWorld& world : kWorlds) {
    SCOPED_TRACE(testing::Message() << world.ranks << " ranks, " << world.ranks_per_node);
    expect_valid(MakeKernelProbe(kernels, 3, world).schedule);
    for (const LinkScope scope : {LinkScope::kNvlink, LinkScope::kNic}) {
      const TransferCase group{
          false, CollectiveKind::kAllReduce, scope, {world.ranks, 1}, {Bytes(9)}};
      expect_valid(MakeCollectiveProbe(group, 3, world)->schedule);
      expect_valid(MakeInterferenceProbe({kernels[0], group, 10, 25}, 3, world)->schedule);
      if (world.ranks == 1) continue;
      const TransferCase message{
          true, CollectiveKind::kAllReduce, scope, {2, 1}, {Bytes(9), Bytes(10)}};
      expect_valid(MakeMessageProbe(message, 3, world)->schedule);
    }
  }
}

TEST(Probes, ReadWhatARunnerOnPaperCosts) {
  const ProbeWorld world{8, 4};
  const KernelProbe kernels =
      MakeKernelProbe(std::vector{MemoryBoundKernel(10), MemoryBoundKernel(20)}, 3, world);
  EXPECT_THAT(ReadKernels(kernels, RunOnPaper(kernels.schedule)),
              ElementsAre(ElementsAre(10, 10, 10), ElementsAre(20, 20, 20)));

  const TransferCase in_node{
      false, CollectiveKind::kAllGather, LinkScope::kNvlink, {4, 4}, {Bytes(50), Bytes(70)}};
  const auto inside = MakeCollectiveProbe(in_node, 2, world);
  EXPECT_THAT(ReadCollectives(*inside, RunOnPaper(inside->schedule)),
              ElementsAre(ElementsAre(50, 50), ElementsAre(70, 70)));
  // HandCosts take 1000 more for the second node, 500 for a message between nodes.
  const TransferCase over_nodes{
      false, CollectiveKind::kAllGather, LinkScope::kNic, {4, 2}, {Bytes(50)}};
  const auto outside = MakeCollectiveProbe(over_nodes, 2, world);
  EXPECT_THAT(ReadCollectives(*outside, RunOnPaper(outside->schedule)), ElementsAre(Each(1050)));

  TransferCase message{true, CollectiveKind::kAllReduce, LinkScope::kNvlink, {2, 2}, {Bytes(33)}};
  const auto near = MakeMessageProbe(message, 2, world);
  EXPECT_THAT(ReadMessages(*near, RunOnPaper(near->schedule)), ElementsAre(ElementsAre(33, 33)));
  message.scope = LinkScope::kNic;
  const auto far = MakeMessageProbe(message, 2, world);
  EXPECT_THAT(ReadMessages(*far, RunOnPaper(far->schedule)), ElementsAre(ElementsAre(533, 533)));
}

// Groups have the shape that is asked for, in every node they touch, and every rank is in one.
TEST(PlaceGroups, ShapesAsAskedFor) {
  struct Case {
    ProbeWorld world;
    LinkScope scope;
    GroupShape group;
  };
  for (const Case& c : std::vector<Case>{{{8, 8}, LinkScope::kNvlink, {2, 2}},
                                         {{8, 8}, LinkScope::kNvlink, {8, 8}},
                                         {{16, 8}, LinkScope::kNvlink, {4, 4}},
                                         {{16, 8}, LinkScope::kNic, {2, 1}},
                                         {{16, 8}, LinkScope::kNic, {8, 4}},
                                         {{16, 8}, LinkScope::kNic, {16, 8}},
                                         {{32, 4}, LinkScope::kNic, {4, 1}},
                                         {{12, 2}, LinkScope::kNic, {3, 1}}}) {
    SCOPED_TRACE(testing::Message() << c.world.ranks << " ranks, group " << c.group.ranks << "/"
                                    << c.group.ranks_per_node);
    const auto placed =
        PlaceGroups({false, CollectiveKind::kAllReduce, c.scope, c.group, {}}, c.world);
    ASSERT_TRUE(placed.ok()) << placed.status();
    ASSERT_EQ(placed->world.gpus(), c.world.ranks);
    ir::Schedule schedule;
    schedule.world = placed->world;
    schedule.gpus_per_node = c.world.ranks_per_node;
    const GroupShape shape = ir::ShapeOf(schedule, placed->group);
    EXPECT_EQ(shape.ranks, c.group.ranks);
    EXPECT_EQ(shape.ranks_per_node, c.group.ranks_per_node);
  }
}

TEST(MessageProbe, PairsAreDisjointAndWhereTheyShouldBe) {
  for (const ProbeWorld& world : kWorlds) {
    if (world.ranks == 1) continue;
    for (const LinkScope scope : {LinkScope::kNvlink, LinkScope::kNic}) {
      const auto probe =
          MakeMessageProbe({true, CollectiveKind::kAllReduce, scope, {2, 2}, {Bytes(1)}}, 1, world);
      ASSERT_FALSE(probe->first_stages.empty());
      const bool possible = scope == LinkScope::kNvlink ? world.ranks_per_node > 1
                                                        : world.ranks > world.ranks_per_node;
      std::set<int> stages;
      for (const std::int32_t stage : probe->first_stages) {
        EXPECT_TRUE(stages.insert(stage).second);
        EXPECT_TRUE(stages.insert(stage + 1).second);
        const int distance = probe->schedule.world.dp * probe->schedule.world.tp;
        for (int i = 0; possible && i < distance; ++i) {
          const int rank = stage * distance + i;
          const bool together =
              rank / world.ranks_per_node == (rank + distance) / world.ranks_per_node;
          EXPECT_EQ(together, scope == LinkScope::kNvlink) << rank;
        }
      }
    }
  }
}

// One rank's times, written down by hand.
class HandTimes {
 public:
  explicit HandTimes(const InterferenceProbe& probe)
      : times_(probe.schedule.programs[0].operations.size()) {}
  // `ids` one after the other from `begin`, each of `length`.
  void Set(const std::vector<std::uint32_t>& ids, std::int64_t begin, std::int64_t length) {
    for (const std::uint32_t id : ids) {
      times_[id] = {begin, begin + length};
      begin += length;
    }
  }
  const std::vector<OperationTime>& times() const { return times_; }

 private:
  std::vector<OperationTime> times_;
};

TEST(InterferenceProbe, TogetherOverAlone) {
  const TransferCase transfer{
      false, CollectiveKind::kAllReduce, LinkScope::kNvlink, {1, 1}, {Bytes(9)}};
  const auto probe = MakeInterferenceProbe({MemoryBoundKernel(1), transfer, 100, 30}, 2, {1, 1});
  ASSERT_TRUE(probe.ok());
  ASSERT_EQ(probe->repetitions.size(), 2U);
  EXPECT_EQ(probe->repetitions[0].kernels.size(), 1U + 6);  // 600 ns of each
  EXPECT_EQ(probe->repetitions[0].collectives.size(), 1U + 20);
  HandTimes hand(*probe);
  std::int64_t start = 0;
  for (const auto& ids : probe->repetitions) {
    hand.Set(ids.collectives, start, 30);
    hand.Set(ids.kernels, start + 1000, 100);
    // Kernels 1.5 times as long, from 2000 to 3050; collectives twice, from 2000 to 3260: the last
    // of them outlive the kernels.
    hand.Set(ids.kernels_together, start + 2000, 150);
    hand.Set(ids.collectives_together, start + 2000, 60);
    start += 10'000;
  }
  const InterferenceFactors factors = ReadInterference(*probe, {hand.times()});
  EXPECT_THAT(factors.kernel, ElementsAre(1.5, 1.5));
  EXPECT_THAT(factors.collective, ElementsAre(2, 2));
}

TEST(InterferenceProbe, NoFactorWhereNothingOverlaps) {
  const TransferCase transfer{
      false, CollectiveKind::kAllReduce, LinkScope::kNvlink, {1, 1}, {Bytes(9)}};
  const auto probe = MakeInterferenceProbe({MemoryBoundKernel(1), transfer, 100, 100}, 1, {1, 1});
  HandTimes hand(*probe);
  const auto& ids = probe->repetitions[0];
  hand.Set(ids.collectives, 0, 100);
  hand.Set(ids.kernels, 1000, 100);
  hand.Set(ids.kernels_together, 2000, 100);
  hand.Set(ids.collectives_together, 5000, 100);
  const InterferenceFactors factors = ReadInterference(*probe, {hand.times()});
  EXPECT_THAT(factors.kernel, IsEmpty());
  EXPECT_THAT(factors.collective, IsEmpty());
}

}  // namespace
}  // namespace optimus::executor
