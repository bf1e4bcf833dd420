#include <gtest/gtest.h>

#include <random>

#include "executor/runtime/run.h"
#include "schedule/ir/bubbles.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

using RankTimes = std::vector<std::vector<OperationTime>>;

// The critical path's times as if every rank had measured them: a picosecond there is a microsecond
// here. All ranks of a program have the same times.
RankTimes TimesOfCriticalPath(const ir::Schedule& schedule, std::int64_t origin_ns) {
  const ir::testing::HandCosts costs;
  const absl::StatusOr<ir::Timeline> timeline = ir::CriticalPathRunner(costs).Run(schedule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  RankTimes times(static_cast<std::size_t>(schedule.world.gpus()));
  for (int rank = 0; rank < schedule.world.gpus(); ++rank) {
    const RankPlace place = PlaceOf(schedule, rank);
    const std::int32_t first = ir::FirstRankOf(schedule, schedule.programs[place.program]);
    for (const ir::Span& span : timeline->spans) {
      if (span.rank != first) continue;
      times[rank].push_back(
          {origin_ns + 1000 * span.start.value(), origin_ns + 1000 * span.end.value()});
    }
  }
  return times;
}

ir::RankAccount Scaled(ir::RankAccount account, std::int64_t factor) {
  account.compute = account.compute * factor;
  account.optimizer = account.optimizer * factor;
  for (Picoseconds& bubble : account.bubbles) bubble = bubble * factor;
  return account;
}

TEST(MakeTimelineTest, GivesWhatTheCriticalPathRunnerGives) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const ir::Schedule schedule = ir::testing::RandomSchedule(seed, seed % 2 == 0).Build(80);
    const ir::testing::HandCosts costs;
    const absl::StatusOr<ir::Timeline> expected = ir::CriticalPathRunner(costs).Run(schedule);
    ASSERT_TRUE(expected.ok());
    const ir::Timeline timeline =
        MakeTimeline(schedule, TimesOfCriticalPath(schedule, 123'456'789), "cpu");
    EXPECT_EQ(timeline.runner, "cpu");
    EXPECT_EQ(timeline.step, expected->step * 1'000'000);
    ASSERT_EQ(timeline.entities.size(), schedule.world.gpus());
    std::int64_t operations = 0;
    for (const ir::EntityAccount& entity : timeline.entities) {
      const RankPlace place = PlaceOf(schedule, entity.rank);
      const ir::EntityAccount& twin = expected->entities[place.program];
      EXPECT_EQ(entity.stage, twin.stage);
      EXPECT_EQ(entity.lane, twin.lane);
      EXPECT_EQ(entity.gpus, 1);
      EXPECT_EQ(entity.account, Scaled(twin.account, 1'000'000)) << seed;
      operations += static_cast<std::int64_t>(schedule.programs[place.program].operations.size());
    }
    EXPECT_EQ(timeline.operations, operations);
    EXPECT_EQ(timeline.spans.size(), operations);
  }
}

// Adds what a real machine adds: late beginnings, longer operations; per stream and dependency
// still in order.
RankTimes WithDelays(const ir::Schedule& schedule, std::uint32_t seed) {
  std::mt19937 random(seed);
  RankTimes times(static_cast<std::size_t>(schedule.world.gpus()));
  for (int rank = 0; rank < schedule.world.gpus(); ++rank) {
    const ir::Program& program = schedule.programs[PlaceOf(schedule, rank).program];
    std::array<std::int64_t, ir::kStreamCount> stream_end{};
    stream_end.fill(5000 + static_cast<std::int64_t>(random() % 50));
    for (const ir::Operation& op : program.operations) {
      std::int64_t& begin = stream_end[static_cast<std::size_t>(op.stream)];
      for (const std::uint32_t d : program.DependenciesOf(op)) {
        begin = std::max(begin, times[rank][d].end_ns);
      }
      begin += static_cast<std::int64_t>(random() % 3);
      const std::int64_t end = begin + static_cast<std::int64_t>(random() % 40);
      times[rank].push_back({begin, end});
      begin = end;
    }
  }
  return times;
}

// The slow twin: an operation of the compute stream begins when it could, by ir::AccountFromSpans.
ir::RankAccount PlainAccount(const ir::Schedule& schedule, const ir::Program& program,
                             const std::vector<OperationTime>& times, std::int64_t origin_ns,
                             Picoseconds step) {
  std::vector<Picoseconds> starts, ends;
  Picoseconds previous;
  for (std::uint32_t id = 0; id < times.size(); ++id) {
    const ir::Operation& op = program.operations[id];
    Picoseconds start((times[id].begin_ns - origin_ns) * 1000);
    ends.emplace_back((times[id].end_ns - origin_ns) * 1000);
    if (op.stream == ir::Stream::kCompute) {
      start = previous;
      for (const std::uint32_t d : program.DependenciesOf(op)) start = std::max(start, ends[d]);
      previous = ends.back();
    }
    starts.push_back(start);
  }
  return ir::AccountFromSpans(schedule, program, starts, ends, step);
}

TEST(MakeTimelineTest, CountsAnOperationFromWhenItCouldBegin) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const ir::Schedule schedule = ir::testing::RandomSchedule(seed, seed % 2 == 0).Build(80);
    const RankTimes times = WithDelays(schedule, seed);
    std::int64_t origin = times[0][0].begin_ns;
    for (const auto& rank : times) {
      for (const OperationTime& time : rank) origin = std::min(origin, time.begin_ns);
    }
    const ir::Timeline timeline = MakeTimeline(schedule, times, "cpu");
    for (const ir::EntityAccount& entity : timeline.entities) {
      const ir::Program& program = schedule.programs[PlaceOf(schedule, entity.rank).program];
      EXPECT_EQ(entity.account,
                PlainAccount(schedule, program, times[entity.rank], origin, timeline.step))
          << "seed " << seed << " rank " << entity.rank;
      EXPECT_EQ(entity.account.total(), timeline.step);
    }
    for (const ir::Span& span : timeline.spans) {
      const OperationTime& time = times[span.rank][span.operation];
      EXPECT_EQ(span.start, Picoseconds((time.begin_ns - origin) * 1000));
      EXPECT_EQ(span.end, Picoseconds((time.end_ns - origin) * 1000));
    }
  }
}

TEST(MakeTimelineTest, TheLaunchGapBelongsToTheOperation) {
  const ir::Schedule schedule = ir::testing::OneForwardOneBackward(1, 1, 10, 20, 0);
  const ir::Timeline timeline = MakeTimeline(schedule, {{{100, 110}, {113, 133}}}, "cpu");
  EXPECT_EQ(timeline.step, Picoseconds(33'000));
  EXPECT_EQ(timeline.entities[0].account.compute, Picoseconds(33'000));
}

// Clocks that differ between ranks, and events stamped too early or too late: a receive that ends
// before its send begins, a kernel that ends before its input has come.
TEST(MakeTimelineTest, AddsUpWhateverTheClocksSay) {
  std::mt19937 random(7);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const ir::Schedule schedule = ir::testing::RandomSchedule(seed, seed % 2 == 0).Build(60);
    RankTimes times = WithDelays(schedule, seed);
    for (auto& rank : times) {
      const auto offset = static_cast<std::int64_t>(random() % 400) - 200;
      for (OperationTime& time : rank) {
        time.begin_ns += offset + static_cast<std::int64_t>(random() % 30) - 15;
        time.end_ns += offset + static_cast<std::int64_t>(random() % 30) - 15;
      }
    }
    const ir::Timeline timeline = MakeTimeline(schedule, times, "cpu");
    for (const ir::EntityAccount& entity : timeline.entities) {
      EXPECT_EQ(entity.account.total(), timeline.step);
      EXPECT_GE(entity.account.compute, Picoseconds(0));
      EXPECT_GE(entity.account.optimizer, Picoseconds(0));
      for (const Picoseconds bubble : entity.account.bubbles) EXPECT_GE(bubble, Picoseconds(0));
    }
    for (const ir::Span& span : timeline.spans) {
      EXPECT_GE(span.start, Picoseconds(0));
      EXPECT_GE(span.end, span.start);
      EXPECT_LE(span.end, timeline.step);
    }
  }
}

TEST(MakeTimelineTest, ARunWithoutOperationsIsEmpty) {
  const ir::Schedule schedule = ir::testing::ScheduleBuilder({1, 1, 1}).Take();
  const ir::Timeline timeline = MakeTimeline(schedule, {{}}, "cpu");
  EXPECT_EQ(timeline.step, Picoseconds(0));
  EXPECT_EQ(timeline.operations, 0);
}

}  // namespace
}  // namespace optimus::executor
