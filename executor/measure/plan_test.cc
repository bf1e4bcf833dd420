#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/testing_kernels.h"
#include "executor/measure/measure.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

using ir::Stream;
using ir::testing::PhaseTag;
using ir::testing::ScheduleBuilder;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

std::uint32_t AddKernel(ScheduleBuilder& builder, int program, std::int32_t work) {
  ir::Operation op;
  op.work = work;
  return builder.Add(program, op, {});
}

std::vector<std::string> Names(const MeasurePlan& plan) {
  std::vector<std::string> names;
  for (const Kernel& kernel : plan.kernels) names.push_back(kernel.name);
  return names;
}

std::vector<std::int64_t> Sizes(const TransferCase& transfer) {
  std::vector<std::int64_t> sizes;
  for (const Bytes size : transfer.sizes) sizes.push_back(size.value());
  return sizes;
}

std::string Text(const TransferCase& transfer) {
  return std::string(transfer.send ? "send" : ToString(transfer.kind)) +
         (transfer.scope == LinkScope::kNvlink ? " in " : " between ") +
         std::to_string(transfer.group.ranks) + "/" + std::to_string(transfer.group.ranks_per_node);
}
std::vector<std::string> Texts(const MeasurePlan& plan) {
  std::vector<std::string> texts;
  for (const TransferCase& transfer : plan.transfers) texts.push_back(Text(transfer));
  return texts;
}

TEST(PlanFor, KernelsThatProgramsUseInTheirOrder) {
  ScheduleBuilder builder({1, 2, 1});
  builder.schedule().kernels = {MemoryBoundKernel(1, "unused"), MemoryBoundKernel(2, "late"),
                                MemoryBoundKernel(3, "early"), MemoryBoundKernel(3, "early"),
                                MemoryBoundKernel(4, "other stage")};
  const std::int32_t fixed = builder.FixedKernel(5);
  for (const std::int32_t work : {2, 1, 3, fixed, 1}) AddKernel(builder, 0, work);
  for (const std::int32_t work : {4, 2}) AddKernel(builder, 1, work);
  const MeasurePlan plan = PlanFor(builder.Take());
  EXPECT_THAT(Names(plan), ElementsAre("early", "late", "other stage"));
  EXPECT_THAT(plan.transfers, IsEmpty());
  EXPECT_FALSE(plan.interference);
}

TEST(PlanFor, CollectivesByTheShapeOfTheirGroups) {
  ScheduleBuilder builder({4, 1, 2});
  builder.schedule().gpus_per_node = 4;
  const auto tp = builder.AddGroup("tp", false, false, true);  // 2 in a node
  const auto dp = builder.AddGroup("dp", true, false, false);  // 4, of which 2 share a node
  const auto one = builder.AddGroup("one", false, true, false);
  const auto add = [&](CollectiveKind kind, std::int64_t bytes, std::int32_t group) {
    builder.AddCollective(0, Stream::kTensorParallel, PhaseTag(Phase::kForward),
                          builder.AddCollectiveWork(kind, bytes, group));
  };
  add(CollectiveKind::kAllReduce, 5000, tp);
  add(CollectiveKind::kAllReduce, 100, tp);
  add(CollectiveKind::kAllReduce, 5000, tp);
  add(CollectiveKind::kAllReduce, 2048, dp);
  add(CollectiveKind::kAllGather, 3000, dp);
  add(CollectiveKind::kAllReduce, 700, one);
  add(CollectiveKind::kAllReduce, 0, tp);
  const MeasurePlan plan = PlanFor(builder.Take());
  EXPECT_THAT(Texts(plan),
              ElementsAre("all_reduce in 2/2", "all_reduce between 4/2", "all_gather between 4/2"));
  EXPECT_THAT(Sizes(plan.transfers[0]), ElementsAre(100, 1024, 2048, 4096, 5000, 65536, 1 << 20));
  EXPECT_THAT(Sizes(plan.transfers[1]), ElementsAre(1024, 2048, 65536, 1 << 20));
  EXPECT_THAT(Sizes(plan.transfers[2]), ElementsAre(1024, 2048, 3000, 65536, 1 << 20));
  EXPECT_EQ(plan.transfers[0].used, Bytes(5000));
  EXPECT_EQ(plan.transfers[1].used, Bytes(2048));
  EXPECT_TRUE(plan.interference);
}

// Four stages of one rank, two in a node: of three edges one leaves its node.
TEST(PlanFor, MessagesInANodeAndBetweenNodes) {
  ScheduleBuilder builder({1, 4, 1});
  builder.schedule().gpus_per_node = 2;
  const std::int32_t transfer = builder.AddTransfer("activation", 1500, 0);
  const std::int32_t free = builder.AddTransfer("free", 0, 0);
  const std::int32_t fixed = builder.AddTransfer("fixed", 9000, 7);
  int message = 0;
  for (int stage = 0; stage < 3; ++stage) {
    for (const std::int32_t work : {transfer, free, fixed}) {
      builder.AddSend(stage, Stream::kForwardSend, stage + 1, message, work);
      builder.AddReceive(stage + 1, Stream::kForwardReceive, stage, message++, work);
    }
  }
  const MeasurePlan plan = PlanFor(builder.Take());
  EXPECT_THAT(Texts(plan), ElementsAre("send in 2/2", "send between 2/1"));
  EXPECT_THAT(Sizes(plan.transfers[0]), ElementsAre(1024, 1500, 65536, 1 << 20));
  EXPECT_THAT(Sizes(plan.transfers[1]), ElementsAre(1024, 1500, 65536, 1 << 20));
  EXPECT_EQ(plan.transfers[1].used, Bytes(1500));
  EXPECT_FALSE(plan.interference);  // messages slow nobody
}

// What a size is measured for, asked of every size there could be.
std::set<std::int64_t> SizesByRule(const std::set<std::int64_t>& own) {
  const std::int64_t largest = *own.rbegin();
  std::set<std::int64_t> sizes = own;
  for (std::int64_t size = 1; size <= 1 << 24; ++size) {
    const bool power = (size & (size - 1)) == 0;
    const bool below = power && size >= 1024 && size < largest;
    const bool to_fit = (size == 1 << 16 || size == 1 << 20) && size > largest;
    if (below || to_fit) sizes.insert(size);
  }
  return sizes;
}

TEST(PlanFor, SizesThatTellLatencyFromBandwidthWhateverIsMoved) {
  const std::set<std::int64_t> cases[] = {
      {8},       {1023},          {1024},          {4096, 65'535}, {65'536},    {8, 100'000},
      {1 << 20}, {(1 << 20) - 1}, {(1 << 20) + 1}, {7, 3'000'000}, {16'777'216}};
  for (const std::set<std::int64_t>& own : cases) {
    ScheduleBuilder builder({2, 2, 1});
    const auto group = builder.AddGroup("dp", true, false, false);
    int message = 0;
    for (const std::int64_t bytes : own) {
      builder.AddCollective(0, Stream::kDataParallel, PhaseTag(Phase::kBackward),
                            builder.AddCollectiveWork(CollectiveKind::kAllReduce, bytes, group));
      const std::int32_t transfer = builder.AddTransfer("activation", bytes, 0);
      builder.AddSend(0, Stream::kForwardSend, 1, message, transfer);
      builder.AddReceive(1, Stream::kForwardReceive, 0, message++, transfer);
    }
    const MeasurePlan plan = PlanFor(builder.Take());
    ASSERT_EQ(plan.transfers.size(), 2U);
    const std::set<std::int64_t> expected = SizesByRule(own);
    EXPECT_GE(expected.size(), 3U);
    for (const TransferCase& transfer : plan.transfers) {
      EXPECT_THAT(Sizes(transfer), ElementsAreArray(expected)) << Text(transfer);
      EXPECT_EQ(transfer.used, Bytes(*own.rbegin()));
    }
  }
}

TEST(Merge, NothingTwice) {
  MeasurePlan plan;
  plan.kernels = {MemoryBoundKernel(1, "a"), MemoryBoundKernel(1, "b")};
  plan.transfers = {{false, CollectiveKind::kAllReduce, LinkScope::kNvlink, {2, 2}, {Bytes(8)}}};
  MeasurePlan other;
  other.kernels = {MemoryBoundKernel(1, "b"), MemoryBoundKernel(2, "b")};
  other.transfers = {{false, CollectiveKind::kAllReduce, LinkScope::kNvlink, {4, 4}, {Bytes(8)}},
                     {false,
                      CollectiveKind::kAllReduce,
                      LinkScope::kNvlink,
                      {2, 2},
                      {Bytes(4), Bytes(8)},
                      Bytes(4)},
                     {true, CollectiveKind::kAllReduce, LinkScope::kNvlink, {2, 2}, {Bytes(4)}}};
  other.interference = true;
  Merge(plan, other);
  EXPECT_THAT(Names(plan), ElementsAre("a", "b", "b"));
  EXPECT_THAT(Texts(plan), ElementsAre("all_reduce in 2/2", "all_reduce in 4/4", "send in 2/2"));
  EXPECT_THAT(Sizes(plan.transfers[0]), ElementsAre(4, 8));
  EXPECT_EQ(plan.transfers[0].used, Bytes(4));
  EXPECT_TRUE(plan.interference);
}

TEST(GenericPlan, EveryKindInEveryPlace) {
  const MeasurePlan plan = GenericPlan(16, 8);
  for (const KernelKind kind :
       {KernelKind::kGemm, KernelKind::kAttention, KernelKind::kMemoryBound}) {
    EXPECT_GE(std::count_if(plan.kernels.begin(), plan.kernels.end(),
                            [&](const Kernel& kernel) { return kernel.kind == kind; }),
              5);
  }
  // Five kinds and messages in a node; five kinds over all ranks, five over one rank of each node,
  // and messages, between nodes.
  EXPECT_EQ(plan.transfers.size(), 17U);
  EXPECT_TRUE(plan.interference);
  const MeasurePlan alone = GenericPlan(1, 1);
  EXPECT_THAT(alone.transfers, IsEmpty());
  EXPECT_FALSE(alone.interference);
}

TEST(GenericPlan, NoGemmIsLargerThanAskedFor) {
  double largest = 0;
  for (const Kernel& kernel : GenericPlan(1, 1, Flops(2e12)).kernels) {
    EXPECT_LE(kernel.flops.value(), 2e12);
    largest = std::max(largest, kernel.flops.value());
  }
  EXPECT_GT(largest, 2e12 / 8);
  for (const Kernel& kernel : GenericPlan(1, 1).kernels) EXPECT_LE(kernel.flops.value(), 2e10);
}

}  // namespace
}  // namespace optimus::executor
