// What would overflow is refused in one line, and what passes does not.

#include "schedule/ir/step_length.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "schedule/ir/critical_path.h"
#include "schedule/ir/testing.h"

namespace optimus::ir {
namespace {

using ::testing::AllOf;
using testing::HandCosts;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PhaseTag;
using testing::RandomSchedule;
using testing::ScheduleBuilder;

constexpr std::int64_t kLimit = kLongestStep.value();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Schedule Kernels(const std::vector<std::int64_t>& durations) {
  ScheduleBuilder builder({1, 2, 1});
  for (const std::int64_t duration : durations) {
    builder.AddKernel(1, PhaseTag(Phase::kForward), duration);
  }
  return builder.Take();
}

std::string Refused(const Schedule& schedule, double slow_down = 1.0) {
  const absl::Status status = CheckLength(schedule, HandCosts(), slow_down);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CheckLength, TheSumCounts) {
  EXPECT_TRUE(CheckLength(Kernels({kLimit / 2, kLimit / 2}), HandCosts(), 1.0).ok());
  EXPECT_THAT(Refused(Kernels({kLimit / 4, kLimit / 2, kLimit / 2})),
              AllOf(HasSubstr("1.25e+18 ps (1.25e+06 s) in all"), HasSubstr("1e+18 ps (1e+06 s)"),
                    HasSubstr("longest is stage 1 (rank 1), operation 1 ("),
                    HasSubstr(") with 5e+17 ps"), HasSubstr("; hint: "), Not(HasSubstr("\n"))));
}

TEST(CheckLength, SlowGpusCount) {
  const Schedule schedule = Kernels({kLimit / 100});
  EXPECT_TRUE(CheckLength(schedule, HandCosts(), 99).ok());
  EXPECT_TRUE(CheckLength(schedule, HandCosts(), 0.1).ok());
  EXPECT_THAT(Refused(schedule, 1000), HasSubstr("with 1e+19 ps"));
}

// Sums that wrapped around to a small or negative step.
TEST(CheckLength, WhatWouldWrapAroundIsRefused) {
  EXPECT_THAT(Refused(Kernels({kMost, kMost, 2})), HasSubstr("operation 0 ("));
  const absl::Status run = CriticalPathRunner(HandCosts()).Run(Kernels({kMost, kMost, 2})).status();
  EXPECT_EQ(run.code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckLength, MessagesAndCollectivesCount) {
  ScheduleBuilder message({1, 2, 1});
  const auto fixed = message.AddTransfer("edge", 0, std::int64_t{1} << 62);
  message.AddSend(0, Stream::kForwardSend, 1, 0, fixed);
  message.AddReceive(1, Stream::kForwardReceive, 0, 0, fixed);
  EXPECT_THAT(Refused(message.schedule()), HasSubstr("stage 0 (rank 0), operation 0 ("));
  ScheduleBuilder collective({2, 1, 1});
  const auto group = collective.AddGroup("dp", true, false, false);
  collective.AddCollective(
      0, Stream::kDataParallel, PhaseTag(Phase::kForward),
      collective.AddCollectiveWork(CollectiveKind::kAllGather, 2 * kLimit, group));
  EXPECT_THAT(Refused(collective.schedule()), HasSubstr("with 2e+18 ps"));
}

// Work that no operation does takes no time.
TEST(CheckLength, OnlyOperationsCount) {
  ScheduleBuilder builder({1, 1, 1});
  builder.FixedKernel(kMost);
  EXPECT_TRUE(CheckLength(builder.schedule(), HandCosts(), 1.0).ok());
}

class FastWire : public HandCosts {
 public:
  TransferCost SendCost(Bytes bytes, bool /*same_node*/) const override {
    return {Picoseconds(0), bytes, LinkScope::kNic};
  }
  BytesPerSecond LinkBandwidth(LinkScope /*scope*/) const override { return BytesPerSecond(1e15); }
};

TEST(CheckLength, MoreBytesThanADoubleCounts) {
  ScheduleBuilder builder({1, 2, 1});
  builder.AddSend(0, Stream::kForwardSend, 1, 0, builder.AddTransfer("edge", kMost, 0));
  const absl::Status status = CheckLength(builder.schedule(), FastWire(), 1.0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("9223372036854775807 bytes"), HasSubstr("operation 0 (")));
}

// The bound itself: no step is longer than its operations are in all.
TEST(CheckLength, TheSumBoundsTheStep) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Schedule schedule = RandomSchedule(seed).Build(200);
    const auto timeline = CriticalPathRunner(HandCosts()).Run(schedule);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    std::int64_t sum = 0;
    for (const Span& span : timeline->spans) sum += (span.end - span.start).value();
    EXPECT_LE(timeline->step.value(), sum);
  }
}

class NodesOfEight : public HandCosts {
 public:
  int gpus_per_node() const override { return 8; }
};

TEST(CheckNodeSize, AnotherSizeIsRefusedWithBothNumbers) {
  Schedule schedule = Kernels({1});
  schedule.gpus_per_node = 4;
  const auto status = CriticalPathRunner(NodesOfEight()).Run(schedule).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("gpus_per_node is 4"), HasSubstr("nodes of 8"), HasSubstr("hint")));
  schedule.gpus_per_node = 8;
  EXPECT_TRUE(CriticalPathRunner(NodesOfEight()).Run(schedule).ok());
}

}  // namespace
}  // namespace optimus::ir
