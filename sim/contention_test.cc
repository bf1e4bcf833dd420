// Contention worked out by hand: a NIC moves a byte in 10 ps, an NVLink in 2 ps, latency is 0 or
// stated.

#include <gtest/gtest.h>

#include "sim/testing.h"

namespace optimus::sim {
namespace {

using ir::Stream;
using ir::testing::PhaseTag;
using ir::testing::ScheduleBuilder;
using testing::EndOf;
using testing::Simulate;
using testing::WireCosts;
using testing::With;

const ir::Tag kForward = PhaseTag(Phase::kForward);

ir::Timeline RunExactly(const ir::Schedule& schedule, const WireCosts& costs, Options options) {
  auto timeline = Simulate(schedule, costs, std::move(options));
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  if (!timeline.ok()) return {};
  for (const ir::EntityAccount& entity : timeline->entities) {
    EXPECT_EQ(entity.account.total(), timeline->step) << "rank " << entity.rank;
  }
  return *std::move(timeline);
}

// Stage 0 sends `first` bytes on the forward and `second` bytes on the backward stream, the second
// one after `delay`; both leave by the NIC of GPU 0.
struct TwoSends {
  TwoSends(std::int64_t first_bytes, std::int64_t second_bytes, std::int64_t delay,
           int receivers = 1)
      : builder({1, 1 + receivers, 1}) {
    builder.schedule().gpus_per_node = 1;
    const auto a = builder.AddTransfer("a", first_bytes, 0);
    const auto b = builder.AddTransfer("b", second_bytes, 0);
    first = builder.AddSend(0, Stream::kForwardSend, 1, 0, a);
    builder.AddReceive(1, Stream::kForwardReceive, 0, 0, a);
    const auto kernel = builder.AddKernel(0, kForward, delay);
    second = builder.AddSend(0, Stream::kBackwardSend, receivers, 1, b, {kernel});
    builder.AddReceive(receivers, Stream::kBackwardReceive, 0, 1, b);
  }
  ScheduleBuilder builder;
  std::uint32_t first, second;
};

TEST(ContentionTest, OneSendAloneHasTheWholeNic) {
  TwoSends sends(1000, 1, 50000);
  const ir::Timeline timeline =
      RunExactly(sends.builder.schedule(), WireCosts(7), With(Fidelity::kGpu));
  EXPECT_EQ(EndOf(sends.builder.schedule(), timeline, 0, sends.first), 7 + 10000);
}

TEST(ContentionTest, TwoEqualSendsOfOneNicTakeTwiceAsLong) {
  for (const int receivers : {1, 2}) {  // shared on one side only, or on both
    TwoSends sends(1000, 1000, 0, receivers);
    const ir::Timeline timeline =
        RunExactly(sends.builder.schedule(), WireCosts(), With(Fidelity::kGpu));
    EXPECT_EQ(EndOf(sends.builder.schedule(), timeline, 0, sends.first), 20000);
    EXPECT_EQ(EndOf(sends.builder.schedule(), timeline, 0, sends.second), 20000);
  }
}

TEST(ContentionTest, LatencyUsesNoBandwidth) {
  // The second starts its bytes at 4000 + 500; by then the first has moved 400 of its 1000.
  TwoSends sends(1000, 1000, 4000);
  const ir::Timeline timeline =
      RunExactly(sends.builder.schedule(), WireCosts(500), With(Fidelity::kGpu));
  EXPECT_EQ(EndOf(sends.builder.schedule(), timeline, 0, sends.first), 500 + 4000 + 12000);
  EXPECT_EQ(EndOf(sends.builder.schedule(), timeline, 0, sends.second), 500 + 20000);
}

// The two ends of four stages sum the gradients of what both hold while one of them sends to the
// other; the two in the middle sum those of their copies, over both replicas, and share nothing.
TEST(ContentionTest, PairsOfStagesInEveryGranularity) {
  ScheduleBuilder builder({2, 4, 1});
  builder.schedule().gpus_per_node = 1;
  const auto pair = [&](const char* name, bool over_dp, std::int32_t first, std::int32_t second) {
    ir::Group group{name, over_dp, true, false};
    group.pp_pair = {first, second};
    const auto work =
        builder.AddCollectiveWork(CollectiveKind::kAllReduce, 1000, builder.AddGroup(group));
    for (const int stage : {first, second}) {
      builder.AddCollective(stage, Stream::kDataParallel, PhaseTag(Phase::kGradientSync), work);
    }
  };
  pair("tied", false, 0, 3);
  pair("copies", true, 1, 2);
  const auto transfer = builder.AddTransfer("message", 1000, 0);
  builder.AddSend(0, Stream::kForwardSend, 3, 0, transfer);
  builder.AddReceive(3, Stream::kForwardReceive, 0, 0, transfer);
  for (const Fidelity fidelity : {Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
    const ir::Timeline timeline = RunExactly(builder.schedule(), WireCosts(), With(fidelity));
    EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, 0), 20000) << ToString(fidelity);
    EXPECT_EQ(EndOf(builder.schedule(), timeline, 3, 0), 20000) << ToString(fidelity);
    for (const int stage : {1, 2}) {
      EXPECT_EQ(EndOf(builder.schedule(), timeline, stage, 0), 10000) << ToString(fidelity);
    }
  }
}

// Late in a long step SimGrid's seconds still tell picoseconds apart.
TEST(ContentionTest, SharesExactlyAfterTenSeconds) {
  constexpr std::int64_t kTenSeconds = 10 * kPicosecondsPerSecond;
  ScheduleBuilder builder({1, 2, 1});
  builder.schedule().gpus_per_node = 1;
  const auto edge = builder.AddTransfer("edge", 1001, 0);
  const auto kernel = builder.AddKernel(0, kForward, kTenSeconds + 3);
  const auto first = builder.AddSend(0, Stream::kForwardSend, 1, 0, edge, {kernel});
  const auto second = builder.AddSend(0, Stream::kBackwardSend, 1, 1, edge, {kernel});
  builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  builder.AddReceive(1, Stream::kBackwardReceive, 0, 1, edge);
  const ir::Timeline timeline = RunExactly(builder.schedule(), WireCosts(), With(Fidelity::kGpu));
  EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, first), kTenSeconds + 3 + 20020);
  EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, second), kTenSeconds + 3 + 20020);
}

TEST(ContentionTest, OppositeDirectionsDoNotShare) {
  ScheduleBuilder builder({1, 2, 1});
  builder.schedule().gpus_per_node = 1;
  const auto edge = builder.AddTransfer("edge", 1000, 0);
  const auto there = builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
  builder.AddReceive(0, Stream::kBackwardReceive, 1, 1, edge);
  const auto back = builder.AddSend(1, Stream::kBackwardSend, 0, 1, edge);
  builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  const ir::Timeline timeline = RunExactly(builder.schedule(), WireCosts(), With(Fidelity::kGpu));
  EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, there), 10000);
  EXPECT_EQ(EndOf(builder.schedule(), timeline, 1, back), 10000);
}

// A data-parallel collective of stage 0 and a pipeline send from it, both at once.
struct CollectiveAndSend {
  explicit CollectiveAndSend(int tp, int gpus_per_node) : builder({2, 2, tp}) {
    builder.schedule().gpus_per_node = gpus_per_node;
    const auto group = builder.AddGroup("dp", true, false, false);
    const auto work = builder.AddCollectiveWork(CollectiveKind::kReduceScatter, 3000, group);
    const auto edge = builder.AddTransfer("edge", 1000, 0);
    collective = builder.AddCollective(0, Stream::kDataParallel, kForward, work);
    send = builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
    builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  }
  ScheduleBuilder builder;
  std::uint32_t collective, send;
};

TEST(ContentionTest, SendAndDataParallelCollectiveShareTheNic) {
  for (const Fidelity fidelity : {Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
    for (const int tp : {1, 4}) {
      CollectiveAndSend both(tp, tp);
      const ir::Timeline timeline =
          RunExactly(both.builder.schedule(), WireCosts(), With(fidelity));
      // Half the NIC each until the send's 1000 bytes are through; 2000 bytes are left then.
      EXPECT_EQ(EndOf(both.builder.schedule(), timeline, 0, both.send), 20000);
      EXPECT_EQ(EndOf(both.builder.schedule(), timeline, 0, both.collective), 40000);
      EXPECT_EQ(timeline.step, Picoseconds(40000));
    }
  }
}

TEST(ContentionTest, TwoNvlinkCollectivesOfOneGroupShare) {
  for (const Fidelity fidelity : {Fidelity::kFolded, Fidelity::kGroup, Fidelity::kGpu}) {
    ScheduleBuilder builder({1, 1, 4});
    const auto group = builder.AddGroup("tp", false, false, true);
    const auto work = builder.AddCollectiveWork(CollectiveKind::kAllGather, 1000, group);
    const auto kernel = builder.AddKernel(0, kForward, 500);
    const auto a = builder.AddCollective(0, Stream::kTensorParallel, kForward, work);
    const auto b =
        builder.AddCollective(0, Stream::kEncoderCommunication, kForward, work, {kernel});
    const ir::Timeline timeline = RunExactly(builder.schedule(), WireCosts(), With(fidelity));
    // 250 bytes alone, 750 at half speed, then the other one's last 250 alone.
    EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, a), 500 + 3000);
    EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, b), 4000);
  }
}

TEST(ContentionTest, NvlinkAndNicDoNotShare) {
  ScheduleBuilder builder({2, 1, 2});
  builder.schedule().gpus_per_node = 2;
  const auto tp = builder.AddGroup("tp", false, false, true);
  const auto dp = builder.AddGroup("dp", true, false, false);
  const auto gather =
      builder.AddCollective(0, Stream::kTensorParallel, kForward,
                            builder.AddCollectiveWork(CollectiveKind::kAllGather, 1000, tp));
  const auto reduce =
      builder.AddCollective(0, Stream::kDataParallel, kForward,
                            builder.AddCollectiveWork(CollectiveKind::kReduceScatter, 1000, dp));
  const ir::Timeline timeline = RunExactly(builder.schedule(), WireCosts(), With(Fidelity::kGpu));
  EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, gather), 2000);
  EXPECT_EQ(EndOf(builder.schedule(), timeline, 0, reduce), 10000);
}

// Two replicas of one GPU each, stage 1 on other leaf switches than stage 0.
ir::Schedule AcrossLeaves() {
  ScheduleBuilder builder({2, 2, 1});
  builder.schedule().gpus_per_node = 1;
  const auto edge = builder.AddTransfer("edge", 1000, 0);
  builder.AddSend(0, Stream::kForwardSend, 1, 0, edge);
  builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  return builder.Take();
}

TEST(ContentionTest, OversubscribedUplinksAreShared) {
  for (const Fidelity fidelity : {Fidelity::kGroup, Fidelity::kGpu}) {
    Options options = With(fidelity);
    options.nodes_per_leaf = 2;
    EXPECT_EQ(RunExactly(AcrossLeaves(), WireCosts(), options).step, Picoseconds(10000));
    options.oversubscription = 2.0;  // a trunk of one NIC for the two replicas
    EXPECT_EQ(RunExactly(AcrossLeaves(), WireCosts(), options).step, Picoseconds(20000));
    options.nodes_per_leaf = 4;  // nothing leaves the leaf
    EXPECT_EQ(RunExactly(AcrossLeaves(), WireCosts(), options).step, Picoseconds(10000));
  }
}

// Every rank: a kernel of 1000, a tensor-parallel collective, a kernel of 1000.
TEST(SlowGpuTest, DelaysItsTensorParallelGroupOnly) {
  ScheduleBuilder builder({2, 1, 4});
  const auto group = builder.AddGroup("tp", false, false, true);
  const auto work = builder.AddCollectiveWork(CollectiveKind::kAllGather, 100, group);
  const auto before = builder.AddKernel(0, kForward, 1000);
  const auto gather = builder.AddCollective(0, Stream::kTensorParallel, kForward, work, {before});
  builder.AddKernel(0, kForward, 1000, {gather});
  Options options = With(Fidelity::kAuto);
  options.slow_gpus = {{5, 1.5}};  // rank 1 of replica 1
  const ir::Timeline timeline = RunExactly(builder.schedule(), WireCosts(), options);
  EXPECT_EQ(timeline.fidelity, "gpu");
  EXPECT_EQ(timeline.step, Picoseconds(1500 + 200 + 1500));
  ASSERT_EQ(timeline.entities.size(), 8U);
  auto tp_wait = [&](int rank) {
    return timeline.entities[rank]
        .account.bubbles[static_cast<std::size_t>(ir::BubbleClass::kTp)]
        .value();
  };
  EXPECT_EQ(tp_wait(0), 200);
  EXPECT_EQ(tp_wait(4), 500 + 200);
  EXPECT_EQ(tp_wait(5), 200);
  EXPECT_EQ(timeline.entities[5].account.compute, Picoseconds(3000));
  EXPECT_EQ(timeline.entities[4].account.compute, Picoseconds(2000));
}

// The slow rank's send leaves later and by its own NIC: the others' are not held up by it.
TEST(SlowGpuTest, SendsOfAGroupGoApart) {
  ScheduleBuilder builder({1, 2, 2});
  builder.schedule().gpus_per_node = 2;
  const auto edge = builder.AddTransfer("edge", 100, 0);
  const auto kernel = builder.AddKernel(0, kForward, 1000);
  builder.AddSend(0, Stream::kForwardSend, 1, 0, edge, {kernel});
  const auto receive = builder.AddReceive(1, Stream::kForwardReceive, 0, 0, edge);
  builder.AddKernel(1, kForward, 1000, {receive});
  Options options = With(Fidelity::kGpu);
  options.slow_gpus = {{1, 3.0}};
  const ir::Timeline timeline = RunExactly(builder.schedule(), WireCosts(), options);
  EXPECT_EQ(EndOf(builder.schedule(), timeline, 1, receive), 2000);
  EXPECT_EQ(timeline.step, Picoseconds(3000 + 1000 + 1000));
}

}  // namespace
}  // namespace optimus::sim
