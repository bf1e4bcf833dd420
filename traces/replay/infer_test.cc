#include "traces/replay/infer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "traces/replay/replay.h"
#include "traces/replay/testing.h"
#include "traces/replay/what_if.h"

namespace optimus::traces {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::int64_t kUs = 1'000'000;

// A kernel, an all-reduce of what it made, and a kernel that needs the sum: as PyTorch records it,
// without a word of who waits for whom. `launches`: with the calls that launched them.
Recording Untold(bool launches) {
  RecordingBuilder b;
  b.recording().format = "kineto";
  b.Rank(0, {"thread 1", "stream 7", "stream 20"});
  const std::int32_t group = b.Group("0", {0});
  const auto launch = [&](std::int64_t at) {
    if (launches) b.Op(0, 0, "cudaLaunchKernel", at * kUs, (at + 1) * kUs, OpKind::kHost);
  };
  launch(0);
  launch(2);
  launch(4);
  b.Op(0, 1, "gemm", 10 * kUs, 110 * kUs);
  if (launches) b.DependsOn(0, 0, DependencyKind::kLaunch);
  b.Communicate(0, 2, CommunicationKind::kAllReduce, group, 112 * kUs, 212 * kUs);
  if (launches) b.DependsOn(0, 1, DependencyKind::kLaunch);
  b.Op(0, 1, "adam", 215 * kUs, 315 * kUs);
  if (launches) b.DependsOn(0, 2, DependencyKind::kLaunch);
  return b.recording();
}

std::int64_t StepUs(const ReplayGraph& graph, const WhatIf& what_if) {
  const auto durations = Apply(graph, ClassesOf(graph), what_if, RecordedDurations(graph));
  EXPECT_TRUE(durations.ok()) << durations.status();
  return Replay(graph, durations->durations).step.value() / kUs;
}

TEST(InferStreamWaits, CommunicationAndKernelsMoveWithEachOther) {
  for (const bool launches : {false, true}) {
    const auto graph = Rebuild(Untold(launches));
    ASSERT_TRUE(graph.ok()) << graph.status();
    const std::int64_t step = StepUs(*graph, {});
    WhatIf faster, free;
    faster.compute_scale = 0.5;
    free.drop = {"all"};
    EXPECT_EQ(StepUs(*graph, faster), step - 100) << launches;
    EXPECT_EQ(StepUs(*graph, free), step - 100) << launches;
    ASSERT_THAT(graph->recording.remarks, SizeIs(2));
    EXPECT_THAT(graph->recording.remarks[0].what, HasSubstr("communication without events"));
    EXPECT_THAT(graph->recording.remarks[1].what, HasSubstr("had just ended"));
  }
}

// A kernel whose call came after the communication was over did not wait for it.
TEST(InferStreamWaits, NotForKernelsThatTheHostWasLateWith) {
  Recording recording = Untold(true);
  RecordedRank& rank = recording.ranks[0];
  rank.ops[2].start = Picoseconds(213 * kUs);
  rank.ops[2].end = Picoseconds(214 * kUs);
  InferStreamWaits(recording);
  ASSERT_THAT(recording.remarks, SizeIs(1));
  EXPECT_THAT(recording.remarks[0].what, HasSubstr("communication without events"));
}

// What ran beside a communication waited for nobody.
TEST(InferStreamWaits, NotAgainstTheRecordedTimes) {
  Recording recording = Untold(true);
  RecordedRank& rank = recording.ranks[0];
  rank.ops[4].start = Picoseconds(50 * kUs);  // the all-reduce, beside the kernel before it
  InferStreamWaits(recording);
  ASSERT_THAT(recording.remarks, SizeIs(1));
  EXPECT_THAT(recording.remarks[0].what, HasSubstr("had just ended"));
}

TEST(InferStreamWaits, NotWhereTheFileHasEvents) {
  Recording recording = Untold(false);
  recording.ranks[0].dependencies.push_back({0, DependencyKind::kEvent});
  recording.ranks[0].ops[2].first_dependency = 0;
  recording.ranks[0].ops[2].dependency_count = 1;
  InferStreamWaits(recording);
  EXPECT_THAT(recording.remarks, SizeIs(0));
}

}  // namespace
}  // namespace optimus::traces
