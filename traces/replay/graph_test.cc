#include "traces/replay/graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "traces/replay/replay.h"
#include "traces/replay/testing.h"
#include "traces/replay/what_if.h"

namespace optimus::traces {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kAllReduce = CommunicationKind::kAllReduce;
constexpr auto kAllGather = CommunicationKind::kAllGather;

ReplayGraph RebuildOk(Recording recording, bool fold = false) {
  recording.folded = fold;
  auto graph = Rebuild(std::move(recording));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Run ReplayOf(const ReplayGraph& graph) { return Replay(graph, RecordedDurations(graph)); }

void ExpectReplaysAsRecorded(const ReplayGraph& graph) {
  const Run run = ReplayOf(graph);
  EXPECT_EQ(run.step, graph.step);
  for (TaskId task = 0; task < graph.tasks.size(); ++task) {
    EXPECT_EQ(run.tasks[task].start, graph.tasks[task].start) << task;
    EXPECT_EQ(run.tasks[task].end, graph.tasks[task].end) << task;
  }
}

// The step of the same trace with all kernels `factor` times as long.
Picoseconds Scaled(const ReplayGraph& graph, double factor) {
  WhatIf what_if;
  what_if.compute_scale = factor;
  const auto durations = Apply(graph, ClassesOf(graph), what_if, RecordedDurations(graph));
  EXPECT_TRUE(durations.ok());
  return Replay(graph, durations->durations).step;
}

// Trap: kernels of a stream that name no successors still run one after another.
TEST(Rebuild, KernelsOfAStreamRunOneAfterAnother) {
  RecordingBuilder b;
  b.Rank(0, {"stream 7"});
  b.Op(0, 0, "a", 0, 100);
  b.Op(0, 0, "b", 110, 200);
  b.Op(0, 0, "c", 200, 300);
  const ReplayGraph graph = RebuildOk(b.recording());
  ExpectReplaysAsRecorded(graph);
  EXPECT_EQ(graph.tasks[1].lag, Picoseconds(10));
  EXPECT_EQ(Scaled(graph, 2), Picoseconds(590));  // 2 * (100 + 90 + 100) + 10
}

TEST(Rebuild, LanesWithoutOrderHaveOnlyDependencies) {
  RecordingBuilder b;
  b.Rank(0, {"compute"});
  b.Op(0, 0, "a", 0, 100);
  b.Op(0, 0, "b", 50, 200);
  b.recording().ranks[0].lanes[0].in_order = false;
  const ReplayGraph graph = RebuildOk(b.recording());
  ExpectReplaysAsRecorded(graph);
  EXPECT_THAT(graph.edges, SizeIs(0));
}

// The recorded time of a member is mostly waiting: it comes out of the run again, it is not
// replayed.
TEST(Rebuild, TheDurationOfACollectiveIsFromTheLastArrivalOn) {
  RecordingBuilder b;
  b.Rank(0, {"compute", "nccl"});
  b.Rank(1, {"compute", "nccl"});
  const std::int32_t group = b.Group("0", {0, 1});
  for (int rank = 0; rank < 2; ++rank) {
    const std::int64_t length = rank == 0 ? 100 : 400;
    const auto kernel = b.Op(rank, 0, "k", 0, length);
    b.Communicate(rank, 1, kAllReduce, group, length, 450, -1, {kernel});
  }
  const ReplayGraph graph = RebuildOk(b.recording());
  ASSERT_THAT(graph.transfers, SizeIs(1));
  EXPECT_EQ(graph.transfers[0].duration, Picoseconds(50));
  ExpectReplaysAsRecorded(graph);
  EXPECT_EQ(Scaled(graph, 0.5), Picoseconds(250));
  WhatIf slow;
  slow.stragglers = {{0, 5.0}};  // rank 0 takes 500 and is last now
  const auto durations = Apply(graph, ClassesOf(graph), slow, RecordedDurations(graph));
  ASSERT_TRUE(durations.ok());
  EXPECT_EQ(Replay(graph, durations->durations).step, Picoseconds(550));
}

// Trap: group A is ranks 0 to 7, group B ranks 4 to 7. Ranks 4 to 7 reduce on B first, then all
// gather on A: legal, though ranks 0 to 3 never heard of B.
TEST(Rebuild, SubGroupsMayDiverge) {
  RecordingBuilder b;
  for (int rank = 0; rank < 8; ++rank) b.Rank(rank, {"compute", "nccl"});
  const std::int32_t all = b.Group("A", {0, 1, 2, 3, 4, 5, 6, 7});
  const std::int32_t half = b.Group("B", {4, 5, 6, 7});
  for (int rank = 0; rank < 8; ++rank) {
    const auto kernel = b.Op(rank, 0, "k", 0, 100);
    std::int64_t start = 100;
    if (rank >= 4) {
      b.Communicate(rank, 1, kAllReduce, half, 100, 300, -1, {kernel});
      start = 300;
    }
    b.Communicate(rank, 1, kAllGather, all, start, 360, -1, {kernel});
  }
  const ReplayGraph graph = RebuildOk(b.recording());
  EXPECT_THAT(graph.unpaired, SizeIs(0));
  ASSERT_THAT(graph.transfers, SizeIs(2));
  ExpectReplaysAsRecorded(graph);
  // Ranks 0 to 3 wait for A alone: without B they would end at 160.
  const OpClasses classes = ClassesOf(graph);
  WhatIf no_b;
  no_b.drop = {"all_reduce"};
  const auto durations = Apply(graph, classes, no_b, RecordedDurations(graph));
  ASSERT_TRUE(durations.ok());
  EXPECT_EQ(Replay(graph, durations->durations).step, Picoseconds(160));
}

TEST(Rebuild, CollectivesInOppositeOrdersAreACircle) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) b.Rank(rank, {"nccl"});
  const std::int32_t a = b.Group("A", {0, 1});
  const std::int32_t c = b.Group("B", {0, 1});
  b.Communicate(0, 0, kAllReduce, a, 0, 10);
  b.Communicate(0, 0, kAllGather, c, 10, 20);
  b.Communicate(1, 0, kAllGather, c, 0, 20);
  b.Communicate(1, 0, kAllReduce, a, 10, 20);
  b.recording().one_clock = true;
  for (RecordedRank& rank : b.recording().ranks) {
    for (RecordedOp& op : rank.ops) {
      op.start = Picoseconds(0);
      op.end = Picoseconds(20);
    }
  }
  const auto graph = Rebuild(b.recording());
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.status().message(),
              AllOf(HasSubstr("wait for each other in a circle"), HasSubstr("rank 0 'all_gather'"),
                    HasSubstr("rank 1 'all_reduce'")));
}

// Trap: a dependency cycle inside a rank.
TEST(Rebuild, NamesTheMembersOfACycle) {
  RecordingBuilder b;
  b.Rank(0, {"a", "b"});
  b.Op(0, 0, "first", 0, 10);
  b.DependsOn(0, 1, DependencyKind::kAfter);
  b.Op(0, 1, "second", 0, 10, OpKind::kCompute, {0});
  const auto graph = Rebuild(b.recording());
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(graph.status().message(),
              AllOf(HasSubstr("rank 0 'first' (operation 0), which waits for rank 0 'second' "
                              "(operation 1), which waits for the first")));
}

// Trap: ncclDevKernel_SendRecv says no direction. Of two ranks it is clear who waits for whom.
TEST(Rebuild, SendRecvKernelsOfAPairWaitForEachOther) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) b.Rank(rank, {"compute", "nccl"});
  const std::int32_t pair = b.Group("7", {0, 1});
  for (int rank = 0; rank < 2; ++rank) {
    const auto kernel = b.Op(rank, 0, "k", 0, rank == 0 ? 300 : 100);
    b.Communicate(rank, 1, CommunicationKind::kSendReceive, pair, rank == 0 ? 300 : 100, 330, -1,
                  {kernel});
  }
  const ReplayGraph graph = RebuildOk(b.recording());
  ASSERT_THAT(graph.transfers, SizeIs(1));
  EXPECT_EQ(graph.transfers[0].duration, Picoseconds(30));
  EXPECT_THAT(graph.unpaired, SizeIs(0));
}

TEST(Rebuild, SendRecvKernelsOfManyRanksAreListedAndKeepTheirTime) {
  RecordingBuilder b;
  for (int rank = 0; rank < 3; ++rank) b.Rank(rank, {"nccl"});
  const std::int32_t group = b.Group("0", {0, 1, 2});
  for (int rank = 0; rank < 3; ++rank) {
    b.Communicate(rank, 0, CommunicationKind::kSendReceive, group, 0, 100);
  }
  const ReplayGraph graph = RebuildOk(b.recording());
  EXPECT_THAT(graph.transfers, SizeIs(0));
  ASSERT_THAT(graph.unpaired, SizeIs(1));
  EXPECT_EQ(graph.unpaired[0].count, 3);
  EXPECT_THAT(graph.unpaired[0].what, HasSubstr("whose peer the file does not say"));
  EXPECT_EQ(graph.unpaired[0].operations[2].rank, 2);
  EXPECT_EQ(graph.step, Picoseconds(100));
}

// Trap: a broadcast is a collective as others are: nobody ends before the root is there.
TEST(Rebuild, BroadcastsWaitForTheRoot) {
  RecordingBuilder b;
  for (int rank = 0; rank < 3; ++rank) b.Rank(rank, {"compute", "nccl"});
  const std::int32_t group = b.Group("0", {0, 1, 2});
  for (int rank = 0; rank < 3; ++rank) {
    const std::int64_t length = rank == 0 ? 500 : 100;  // rank 0 is the root, and late
    const auto kernel = b.Op(rank, 0, "k", 0, length);
    b.Communicate(rank, 1, CommunicationKind::kBroadcast, group, length, 520 + rank, -1, {kernel});
  }
  const ReplayGraph graph = RebuildOk(b.recording());
  ExpectReplaysAsRecorded(graph);
  WhatIf fast;
  fast.stragglers = {{0, 0.1}};
  const auto durations = Apply(graph, ClassesOf(graph), fast, RecordedDurations(graph));
  ASSERT_TRUE(durations.ok());
  EXPECT_EQ(Replay(graph, durations->durations).step, Picoseconds(122));
}

// Trap: a communication without a type is no all-reduce. It is listed, and keeps its time.
TEST(Rebuild, UnknownCommunicationIsNeverMatched) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) b.Rank(rank, {"nccl"});
  const std::int32_t group = b.Group("0", {0, 1});
  b.Communicate(0, 0, CommunicationKind::kUnknown, group, 0, 100);
  b.Communicate(1, 0, CommunicationKind::kUnknown, group, 50, 100);
  const ReplayGraph graph = RebuildOk(b.recording());
  EXPECT_THAT(graph.transfers, SizeIs(0));
  ASSERT_THAT(graph.unpaired, SizeIs(1));
  EXPECT_THAT(graph.unpaired[0].what, HasSubstr("type the file does not say"));
  EXPECT_EQ(ClassesOf(graph).names[1], "unknown communication");
}

// Trap: clocks that differ between ranks. Rank 1's is 7,000 ahead; ends of collectives tell.
TEST(Rebuild, AlignsClocksByCollectives) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) b.Rank(rank, {"nccl"});
  const std::int32_t group = b.Group("0", {0, 1});
  for (std::int64_t i = 0; i < 5; ++i) {
    b.Communicate(0, 0, kAllReduce, group, 100 * i, 100 * i + 60);
    const std::int64_t noise = i == 2 ? 9 : 0;  // one of five says otherwise
    b.Communicate(1, 0, kAllReduce, group, 7000 + 100 * i + 20, 7000 + 100 * i + 60 + noise);
  }
  b.recording().ranks[1].step_start = Picoseconds(7000);
  const ReplayGraph graph = RebuildOk(b.recording());
  ASSERT_THAT(graph.corrections, SizeIs(1));
  EXPECT_EQ(graph.corrections[0].rank, 1);
  EXPECT_EQ(graph.corrections[0].correction, Picoseconds(-7000));
  EXPECT_EQ(graph.corrections[0].spread, Picoseconds(0));
  EXPECT_EQ(graph.corrections[0].transfers, 5);
  EXPECT_EQ(graph.step, Picoseconds(460));
  ExpectReplaysAsRecorded(graph);
}

// Hosts that count from their own start: origins years apart.
TEST(Rebuild, ClocksOfOtherYearsStartTogether) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) {
    b.Rank(rank, {"stream 7"});
    b.Op(rank, 0, "k", 0, 100);
  }
  b.recording().ranks[1].clock_origin_ns = 1'700'000'000'000'000'000;
  const ReplayGraph graph = RebuildOk(b.recording());
  EXPECT_EQ(graph.step, Picoseconds(100));
  ASSERT_THAT(graph.unpaired, SizeIs(1));
  EXPECT_THAT(graph.unpaired[0].what, HasSubstr("clock has nothing to do with"));
}

TEST(Rebuild, EagerMessagesDoNotHoldTheSender) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) b.Rank(rank, {"compute", "send", "receive"});
  b.recording().messages = MessageRule::kEager;
  b.recording().waits_inside = false;
  b.recording().one_clock = true;
  const auto produced = b.Op(0, 0, "forward", 0, 100);
  b.Communicate(0, 1, CommunicationKind::kSend, -1, 100, 130, 1, {produced});
  const auto received = b.Communicate(1, 2, CommunicationKind::kReceive, -1, 0, 130, 0);
  b.Op(1, 0, "forward", 130, 230, OpKind::kCompute, {received});
  const ReplayGraph graph = RebuildOk(b.recording());
  ExpectReplaysAsRecorded(graph);
  EXPECT_EQ(Scaled(graph, 2), Picoseconds(430));
  const traces::Run run = ReplayOf(graph);
  EXPECT_EQ(run.tasks[2].reason, BoundBy::kMessage);
}

TEST(Rebuild, ListsMessagesWithoutPartner) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) b.Rank(rank, {"nccl"});
  b.Communicate(0, 0, CommunicationKind::kSend, -1, 0, 30, 1);
  b.Communicate(0, 0, CommunicationKind::kSend, -1, 40, 70, 1);
  b.Communicate(1, 0, CommunicationKind::kReceive, -1, 0, 30, 0);
  const ReplayGraph graph = RebuildOk(b.recording());
  EXPECT_THAT(graph.transfers, SizeIs(1));
  ASSERT_THAT(graph.unpaired, SizeIs(1));
  EXPECT_EQ(graph.unpaired[0].what, "send to rank 1 without a receive");
  EXPECT_EQ(graph.unpaired[0].operations[0].time, Picoseconds(40));
}

// A rank whose window of recording began one collective earlier.
TEST(Rebuild, ShiftsRanksThatRecordedMore) {
  RecordingBuilder b;
  for (int rank = 0; rank < 2; ++rank) b.Rank(rank, {"nccl"});
  const std::int32_t group = b.Group("0", {0, 1});
  b.Communicate(0, 0, kAllGather, group, 0, 10);
  for (int rank = 0; rank < 2; ++rank) {
    b.Communicate(rank, 0, kAllReduce, group, 20, 30);
    b.Communicate(rank, 0, kAllGather, group, 40, 50);
  }
  const ReplayGraph graph = RebuildOk(b.recording());
  ASSERT_THAT(graph.unpaired, SizeIs(1));
  EXPECT_EQ(graph.unpaired[0].count, 1);
  EXPECT_EQ(graph.unpaired[0].operations[0].time, Picoseconds(0));
  EXPECT_THAT(graph.transfers, SizeIs(2));
}

TEST(Rebuild, MissingRanksAreListedUnlessFolded) {
  RecordingBuilder b;
  b.Rank(0, {"nccl"});
  b.Rank(1, {"nccl"});
  const std::int32_t group = b.Group("dp", {0, 1, 2, 3});
  for (int rank = 0; rank < 2; ++rank) b.Communicate(rank, 0, kAllReduce, group, 0, 10);
  const ReplayGraph listed = RebuildOk(b.recording());
  ASSERT_THAT(listed.unpaired, SizeIs(1));
  EXPECT_EQ(listed.unpaired[0].what, "collective of group dp without ranks 2, 3");
  EXPECT_THAT(listed.unpaired[0].effect, HasSubstr("--fold"));
  EXPECT_THAT(RebuildOk(b.recording(), true).unpaired, SizeIs(0));
}

// A synchronising host call ends when the kernel does.
TEST(Rebuild, HostCallsThatSynchroniseEndAfterTheStream) {
  RecordingBuilder b;
  b.Rank(0, {"thread 1", "stream 7"});
  b.Op(0, 0, "cudaLaunchKernel", 0, 5, OpKind::kHost);
  b.Op(0, 1, "k", 8, 100);
  b.DependsOn(0, 0, DependencyKind::kLaunch);
  b.Op(0, 0, "cudaStreamSynchronize", 10, 103, OpKind::kHost);
  b.DependsOn(0, 1, DependencyKind::kEndAfter);
  b.Op(0, 0, "cudaLaunchKernel", 110, 115, OpKind::kHost);
  b.Op(0, 1, "k", 118, 150);
  b.DependsOn(0, 3, DependencyKind::kLaunch);
  const ReplayGraph graph = RebuildOk(b.recording());
  ExpectReplaysAsRecorded(graph);
  // 8 launch, 92 -> 46, 3 + 7 + 5 + 3 host, 32 -> 16.
  EXPECT_EQ(Scaled(graph, 0.5), Picoseconds(88));
}

// Where the GPU is still at the step before, the step is that of the GPU.
TEST(Rebuild, TheStepOfAGpuBehindItsHostIsTheGpus) {
  constexpr std::int64_t kMs = 1'000'000'000;
  RecordingBuilder b;
  b.Rank(0, {"thread 1", "stream 7"});
  b.Op(0, 0, "cudaLaunchKernel", 1 * kMs, 2 * kMs, OpKind::kHost);
  b.Op(0, 1, "k", 90 * kMs, 140 * kMs);
  b.DependsOn(0, 0, DependencyKind::kLaunch);
  b.Op(0, 1, "k", 140 * kMs, 185 * kMs);
  b.recording().ranks[0].step_end = Picoseconds(95 * kMs);
  const ReplayGraph graph = RebuildOk(b.recording());
  EXPECT_EQ(graph.step, Picoseconds(95 * kMs));
  ExpectReplaysAsRecorded(graph);
  ASSERT_THAT(graph.unpaired, SizeIs(1));
  EXPECT_THAT(graph.unpaired[0].operations[0].name, HasSubstr("88 ms behind: k"));
  EXPECT_EQ(Scaled(graph, 2), Picoseconds(190 * kMs));
}

TEST(Rebuild, RefusesAnEmptyTrace) {
  RecordingBuilder b;
  b.Rank(0, {"nccl"});
  EXPECT_THAT(Rebuild(b.recording()).status().message(), HasSubstr("no operations"));
}

}  // namespace
}  // namespace optimus::traces
