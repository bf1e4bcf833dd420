// Timelines of the critical-path runner, distorted in known ways, against slow twins.

#include "validation/compare_timelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/testing_folder.h"
#include "schedule/ir/critical_path.h"
#include "schedule/ir/group_members.h"
#include "schedule/ir/serialize.h"
#include "schedule/ir/testing.h"
#include "schedule/ir/walk.h"

namespace optimus::validation {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ir::Timeline Folded(const ir::Schedule& schedule) {
  const ir::testing::HandCosts costs;
  auto timeline = ir::CriticalPathRunner(costs).Run(schedule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.value_or(ir::Timeline());
}

// One entity and all spans for every rank, as a run records them: copies of the first replica's.
ir::Timeline Unfolded(const ir::Schedule& schedule, const ir::Timeline& folded) {
  ir::Timeline timeline = folded;
  timeline.entities.clear();
  timeline.spans.clear();
  const ir::Parallelism& world = schedule.world;
  for (std::int32_t rank = 0; rank < world.gpus(); ++rank) {
    const int stage = rank / (world.dp * world.tp), lane = ir::LaneOf(schedule, rank % world.tp);
    for (ir::EntityAccount entity : folded.entities) {
      if (entity.stage != stage || entity.lane != lane) continue;
      entity.rank = rank;
      entity.gpus = 1;
      timeline.entities.push_back(entity);
    }
    const ir::Program& program = schedule.programs[ir::ProgramIndex(schedule, stage, lane)];
    for (ir::Span span : folded.spans) {
      if (span.rank != ir::FirstRankOf(schedule, program)) continue;
      span.rank = rank;
      timeline.spans.push_back(span);
    }
  }
  return timeline;
}

ir::Schedule SmallSchedule() { return ir::testing::OneForwardOneBackward(3, 4, 1000, 2000, 100); }

Comparison MustCompare(const ir::Timeline& a, const ir::Timeline& b, const ir::Schedule* schedule) {
  const auto comparison = Compare(a, b, schedule);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return comparison.value_or(Comparison());
}

TEST(Compare, ATimelineWithItself) {
  const ir::Schedule schedule = SmallSchedule();
  const ir::Timeline timeline = Folded(schedule);
  const Comparison comparison = MustCompare(timeline, timeline, &schedule);
  EXPECT_EQ(comparison.step_error, 0);
  EXPECT_EQ(comparison.operations_compared, static_cast<std::int64_t>(timeline.spans.size()));
  EXPECT_EQ(comparison.operations_only_in_one, 0);
  std::vector<std::string> names;
  double sum = 0;
  for (const ShareComparison& share : comparison.shares) {
    names.push_back(share.name);
    EXPECT_EQ(share.error_of_step, 0);
    sum += share.measured_s;
  }
  EXPECT_THAT(
      names, ElementsAre("compute", "optimizer", "bubble_dp_all_gather", "bubble_dp_reduce_scatter",
                         "bubble_pp_warmup", "bubble_pp_cooldown", "bubble_pp_other", "bubble_tp"));
  EXPECT_NEAR(sum, ToSeconds(timeline.step), 1e-15);
  names.clear();
  for (const WorkComparison& work : comparison.work) names.push_back(work.name);
  // 12 backward kernels of 2000 ps, 12 forward ones of 1000, 16 messages of 100.
  EXPECT_THAT(names, ElementsAre("fixed work2000", "fixed work1000", "send edge"));
  EXPECT_EQ(comparison.work[0].operations, 12);
  EXPECT_FALSE(comparison.work[0].transfer);
  EXPECT_TRUE(comparison.work[2].transfer);
  EXPECT_EQ(comparison.simulated_runner, timeline.runner);
  EXPECT_EQ(comparison.measured_runner, timeline.runner);
  EXPECT_NEAR(comparison.work[0].measured_s, 24e-9, 1e-18);
  EXPECT_EQ(comparison.work[2].operations, 16);
  EXPECT_NEAR(comparison.work[2].simulated_s, 1.6e-9, 1e-18);
}

TEST(Compare, ErrorsOfStepAndShares) {
  const ir::Schedule schedule = SmallSchedule();
  const ir::Timeline simulated = Folded(schedule);
  ir::Timeline measured = simulated;
  measured.step += Picoseconds(3000);
  measured.entities[0].account.compute += Picoseconds(3000);
  measured.entities[1].account.optimizer += Picoseconds(3000);
  measured.entities[2].account.bubbles[5] += Picoseconds(3000);
  const Comparison comparison = MustCompare(simulated, measured, &schedule);
  const double step = ToSeconds(measured.step);
  EXPECT_NEAR(comparison.step_error, -3e-9 / step, 1e-12);
  for (const ShareComparison& share : comparison.shares) {
    const bool changed =
        share.name == "compute" || share.name == "optimizer" || share.name == "bubble_tp";
    EXPECT_NEAR(share.error_of_step, changed ? -1e-9 / step : 0, 1e-12) << share.name;
  }
}

// The slow twin of where a collective's time begins: the walk says which operations meet, and of
// every two ranks it is seen whether they are in one group.
void CountFromTheLastMember(const ir::Schedule& schedule, ir::Timeline& timeline) {
  const ir::Timeline before = timeline;
  const ir::Parallelism& world = schedule.world;
  const auto program_of = [&](std::int32_t rank) {
    return rank / (world.dp * world.tp) * schedule.lanes +
           rank % world.tp / (world.tp / schedule.lanes);
  };
  ir::Walk(schedule).Run([&](absl::Span<const ir::OperationRef> met) {
    const ir::Operation& first = schedule.programs[met[0].program].operations[met[0].operation];
    if (first.kind != ir::OperationKind::kCollective) return;
    const ir::Group& group = schedule.groups[schedule.collectives[first.work].group];
    const auto is_one = [&](const ir::Span& span) {
      const ir::OperationRef ref{program_of(span.rank), span.operation};
      return std::find(met.begin(), met.end(), ref) != met.end();
    };
    for (std::size_t i = 0; i < before.spans.size(); ++i) {
      if (!is_one(before.spans[i])) continue;
      const std::int32_t rank = before.spans[i].rank;
      const std::vector<std::int32_t> members =
          ir::RanksOf(schedule, ir::MembersOf(schedule, group, rank / (world.dp * world.tp),
                                              rank / world.tp % world.dp, rank % world.tp));
      for (const ir::Span& other : before.spans) {
        if (!is_one(other)) continue;
        if (std::count(members.begin(), members.end(), other.rank) == 0) continue;
        timeline.spans[i].start = std::max(timeline.spans[i].start, other.start);
      }
      timeline.spans[i].end = std::max(timeline.spans[i].end, timeline.spans[i].start);
    }
  });
}

// The slow twin: every pair of spans is looked at.
std::map<std::string, WorkComparison> Twin(const ir::Timeline& simulated,
                                           const ir::Timeline& measured,
                                           const ir::Schedule& schedule) {
  std::map<std::string, WorkComparison> work;
  const ir::Parallelism& world = schedule.world;
  for (const ir::Span& a : simulated.spans) {
    for (const ir::Span& b : measured.spans) {
      if (a.rank != b.rank || a.operation != b.operation) continue;
      const ir::Program& program =
          schedule.programs[a.rank / (world.dp * world.tp) * schedule.lanes +
                            a.rank % world.tp / (world.tp / schedule.lanes)];
      const ir::Operation& op = program.operations[a.operation];
      std::string name;
      if (op.kind == ir::OperationKind::kReceive) continue;
      if (op.kind == ir::OperationKind::kSend) name = "send " + schedule.transfers[op.work].name;
      if (op.kind == ir::OperationKind::kKernel) name = "fixed " + schedule.kernels[op.work].name;
      if (op.kind == ir::OperationKind::kCollective) {
        const CollectiveWork& c = schedule.collectives[op.work].work;
        name = absl::StrCat(ToString(c.kind), " ", c.name);
      }
      WorkComparison& row = work[name];
      ++row.operations;
      row.simulated_s += ToSeconds(a.end - a.start);
      row.measured_s += ToSeconds(b.end - b.start);
    }
  }
  return work;
}

TEST(Compare, RandomSchedulesAgreeWithTheSlowTwin) {
  std::mt19937 random(2);
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const ir::Schedule schedule =
        ir::testing::RandomSchedule(seed, seed % 2 == 1).Build(20 + static_cast<int>(seed));
    const ir::Timeline simulated = Folded(schedule);
    ir::Timeline measured = Unfolded(schedule, simulated);
    for (ir::Span& span : measured.spans) {
      span.start += Picoseconds(static_cast<std::int64_t>(random() % 50));
      span.end =
          std::max(span.end, span.start) + Picoseconds(static_cast<std::int64_t>(random() % 50));
    }
    measured.step += Picoseconds(static_cast<std::int64_t>(random() % 100));
    if (simulated.step == Picoseconds(0)) continue;
    const Comparison comparison = MustCompare(simulated, measured, &schedule);
    EXPECT_EQ(comparison.operations_compared + comparison.operations_only_in_one,
              static_cast<std::int64_t>(measured.spans.size()));
    CountFromTheLastMember(schedule, measured);
    const auto twin = Twin(simulated, measured, schedule);
    ASSERT_EQ(comparison.work.size(), twin.size());
    double previous = 1;
    for (const WorkComparison& row : comparison.work) {
      ASSERT_EQ(twin.count(row.name), 1U) << row.name;
      EXPECT_EQ(row.operations, twin.at(row.name).operations) << row.name;
      EXPECT_NEAR(row.simulated_s, twin.at(row.name).simulated_s, 1e-18) << row.name;
      EXPECT_NEAR(row.measured_s, twin.at(row.name).measured_s, 1e-18) << row.name;
      EXPECT_LE(row.measured_s, previous);
      previous = row.measured_s;
    }
    // The copies of the folded entities have its means.
    for (const ShareComparison& share : comparison.shares) {
      EXPECT_NEAR(share.simulated_s, share.measured_s, 1e-15) << share.name;
    }
  }
}

TEST(Compare, ACollectiveCountsFromItsLastMember) {
  ir::testing::ScheduleBuilder builder({1, 1, 2});
  const std::int32_t group = builder.AddGroup("tp", false, false, true);
  const std::int32_t work = builder.AddCollectiveWork(CollectiveKind::kAllReduce, 500, group);
  builder.AddCollective(0, ir::Stream::kTensorParallel, {}, work);
  const ir::Schedule schedule = builder.Take();
  const ir::Timeline simulated = Unfolded(schedule, Folded(schedule));
  ir::Timeline measured = simulated;
  // Rank 0 comes at once, rank 1 at 2000; both have it 600 later.
  measured.step = Picoseconds(2600);
  measured.spans[0].end = measured.spans[1].end = Picoseconds(2600);
  measured.spans[1].start = Picoseconds(2000);
  const Comparison comparison = MustCompare(simulated, measured, &schedule);
  ASSERT_EQ(comparison.work.size(), 1U);
  EXPECT_EQ(comparison.work[0].name, "all_reduce all_reduce");
  EXPECT_NEAR(comparison.work[0].simulated_s, 1e-9, 1e-18);
  EXPECT_NEAR(comparison.work[0].measured_s, 1.2e-9, 1e-18);
}

TEST(Compare, WithoutAScheduleThereIsNoWork) {
  const ir::Timeline timeline = Folded(SmallSchedule());
  const Comparison comparison = MustCompare(timeline, timeline, nullptr);
  EXPECT_TRUE(comparison.work.empty());
  EXPECT_EQ(comparison.operations_compared, static_cast<std::int64_t>(timeline.spans.size()));
  ir::Timeline without = timeline;
  without.spans.clear();  // spans need not have been recorded
  EXPECT_EQ(MustCompare(without, timeline, nullptr).operations_only_in_one,
            static_cast<std::int64_t>(timeline.spans.size()));
}

class CompareRefuses : public ::testing::Test {
 protected:
  void Expect(const std::vector<std::string>& words, bool with_schedule = true) const {
    const absl::Status status =
        Compare(simulated_, measured_, with_schedule ? &schedule_ : nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    for (const std::string& word : words) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(word));
    }
  }
  ir::Schedule schedule_ = SmallSchedule();
  ir::Timeline simulated_ = Folded(schedule_), measured_ = simulated_;
};

TEST_F(CompareRefuses, OtherWorlds) {
  measured_ = Folded(ir::testing::OneForwardOneBackward(4, 4, 1000, 2000, 100));
  Expect({"different worlds", "simulated 3 GPUs", "measured 4", "hint"}, false);
}

TEST_F(CompareRefuses, OtherStages) {
  measured_.entities[2].stage = 1;
  Expect({"stage 1, lane 0: simulated 1 GPUs, measured 2", "hint"}, false);
}

TEST_F(CompareRefuses, OtherLanes) {
  measured_.entities[0].lane = 1;
  Expect({"stage 0, lane 0: simulated 1 GPUs, measured 0"}, false);
}

TEST_F(CompareRefuses, AScheduleThatIsNotTheirs) {
  schedule_ = ir::testing::OneForwardOneBackward(4, 4, 1000, 2000, 100);
  Expect({"PP 4", "3 GPUs", "hint"});
  schedule_ = ir::testing::OneForwardOneBackward(3, 2, 1000, 2000, 100);
  Expect({"rank 0", "is not in schedule", "hint"});
}

TEST_F(CompareRefuses, OtherOperationsOfARank) {
  measured_.spans.pop_back();
  Expect({"rank 2", "one timeline only", "hint"});
  std::swap(simulated_, measured_);
  Expect({"rank 2", "one timeline only", "hint"});
  measured_ = simulated_;
  measured_.spans.erase(measured_.spans.begin() + 2);
  Expect({"rank 0: operation 2 is in one timeline only"}, false);
}

TEST_F(CompareRefuses, SpansInDisorder) {
  std::swap(measured_.spans[3], measured_.spans[4]);
  Expect({"measured timeline", "operation 3", "out of order"});
  measured_ = simulated_;
  simulated_.spans[5].end = simulated_.spans[5].start - Picoseconds(1);
  Expect({"simulated timeline", "operation 5", "ends before"});
}

TEST_F(CompareRefuses, Nothing) {
  measured_.entities.clear();
  Expect({"measured timeline: has no entities"});
  measured_ = simulated_;
  simulated_.step = Picoseconds(0);
  Expect({"simulated timeline: lasts no time"});
  simulated_ = measured_;
  measured_.entities[1].gpus = 0;
  Expect({"measured timeline", "rank 1", "0 GPUs"});
}

// However a file was cut, it is refused before anything is compared.
TEST(ReadTimeline, AFileThatIsCutShortIsRefused) {
  const ir::Timeline timeline = Folded(SmallSchedule());
  const TestingFolder folder;
  const std::string whole = (folder.path() / "whole.timeline.pb").string();
  const std::string cut = (folder.path() / "cut.timeline.pb").string();
  ASSERT_TRUE(ir::WriteTimeline(whole, timeline).ok());
  EXPECT_EQ(*ir::ReadTimeline(whole), timeline);
  const std::string content = *ReadFile(whole);
  for (std::size_t size = 1; size < content.size(); ++size) {
    ASSERT_TRUE(WriteFileAtomically(cut, content.substr(0, size)).ok());
    const absl::Status status = ir::ReadTimeline(cut).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(cut), HasSubstr("cut short")));
  }
}

}  // namespace
}  // namespace optimus::validation
