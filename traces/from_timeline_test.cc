#include "traces/from_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "traces/span_name.h"
#include "traces/test_schedule.h"

namespace optimus::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Recording Record(const TestSchedule& test, const ToRecordingOptions& options = {}) {
  auto recording = ToRecording(test.schedule(), test.timeline(), options);
  EXPECT_TRUE(recording.ok()) << recording.status();
  if (!recording.ok()) return {};
  const absl::Status checked = CheckRecording(*recording);
  EXPECT_TRUE(checked.ok()) << checked;
  return *std::move(recording);
}

const RecordedOp& Find(const Recording& recording, std::size_t rank, CommunicationKind kind) {
  for (const RecordedOp& op : recording.ranks[rank].ops) {
    const Communication* c = recording.ranks[rank].CommunicationOf(op);
    if (c != nullptr && c->kind == kind) return op;
  }
  static const RecordedOp none;
  ADD_FAILURE() << "none";
  return none;
}

TEST(FromTimelineTest, MeasuredCollectivesWaitInside) {
  const TestSchedule test(1);
  ir::Timeline timeline = test.timeline();
  timeline.runner = "cpu";
  const auto recording = ToRecording(test.schedule(), timeline, {});
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_TRUE(recording->waits_inside);
}

TEST(FromTimelineTest, SaysWhatKindOfRunItIs) {
  const TestSchedule test(1);
  const Recording recording = Record(test);
  EXPECT_EQ(recording.format, "optimus timeline");
  EXPECT_EQ(recording.world, 8);
  EXPECT_EQ(recording.messages, MessageRule::kEager);
  EXPECT_FALSE(recording.waits_inside);
  EXPECT_TRUE(recording.one_clock);
  EXPECT_TRUE(recording.folded);
  EXPECT_TRUE(recording.remarks.empty());
  ASSERT_EQ(recording.ranks.size(), 2U);
  EXPECT_EQ(recording.ranks[0].rank, 0);
  EXPECT_EQ(recording.ranks[1].rank, 4);
  EXPECT_EQ(recording.ranks[1].stands_for, 4);
  EXPECT_THAT(recording.steps, ElementsAre(StepMark{0, 0, Picoseconds(0), test.step()},
                                           StepMark{0, 4, Picoseconds(0), test.step()}));
}

// An operation's number is its id, with its times, name, lane and dependencies.
TEST(FromTimelineTest, OperationsAreThoseOfTheProgram) {
  const TestSchedule test(2);
  const Recording recording = Record(test);
  for (int stage = 0; stage < 2; ++stage) {
    const ir::Program& program = test.schedule().programs[static_cast<std::size_t>(stage)];
    const RecordedRank& rank = recording.ranks[static_cast<std::size_t>(stage)];
    ASSERT_EQ(rank.ops.size(), program.operations.size());
    for (std::size_t id = 0; id < rank.ops.size(); ++id) {
      const ir::Operation& op = program.operations[id];
      EXPECT_EQ(rank.ops[id].start, test.starts(stage)[id]);
      EXPECT_EQ(rank.ops[id].end, test.ends(stage)[id]);
      EXPECT_EQ(recording.names[rank.ops[id].name], SpanName(test.schedule(), op));
      EXPECT_EQ(rank.lanes[rank.ops[id].lane].name, TrackName(op.stream));
      ASSERT_EQ(rank.ops[id].dependency_count, op.dependency_count);
      for (std::size_t i = 0; i < op.dependency_count; ++i) {
        const Dependency expected = {program.DependenciesOf(op)[i], DependencyKind::kAfter};
        EXPECT_EQ(rank.DependenciesOf(rank.ops[id])[i], expected);
      }
    }
    std::set<std::string> lanes;
    for (const Lane& lane : rank.lanes) {
      EXPECT_TRUE(lane.in_order);
      EXPECT_TRUE(lanes.insert(lane.name).second);
    }
  }
}

TEST(FromTimelineTest, WorkIsWhatTheScheduleSays) {
  const TestSchedule test(3);
  const Recording recording = Record(test);
  const ir::Program& program = test.schedule().programs[1];
  for (std::size_t id = 0; id < program.operations.size(); ++id) {
    const RecordedOp& op = recording.ranks[1].ops[id];
    if (program.operations[id].kind != ir::OperationKind::kKernel) {
      EXPECT_EQ(op.work, -1);
      continue;
    }
    const Kernel& kernel = test.schedule().kernels[program.operations[id].work];
    EXPECT_EQ(op.kind, OpKind::kCompute);
    ASSERT_GE(op.work, 0);
    EXPECT_EQ(recording.ranks[1].works[op.work], (Work{kernel.flops.value(), kernel.bytes}));
  }
}

TEST(FromTimelineTest, CollectivesAreOfTheRanksOwnGroups) {
  const Recording recording = Record(TestSchedule(4));
  const RecordedRank& rank = recording.ranks[1];
  std::map<std::int32_t, std::int64_t> issued;
  std::set<std::string> groups;
  for (const RecordedOp& op : rank.ops) {
    const Communication* c = rank.CommunicationOf(op);
    if (c == nullptr || IsPointToPoint(c->kind)) continue;
    EXPECT_EQ(c->sequence, issued[c->group]++);
    EXPECT_EQ(c->bytes, Bytes(1000));
    EXPECT_EQ(c->peer, -1);
    groups.insert(recording.groups[c->group].name);
  }
  EXPECT_THAT(groups, ElementsAre("dp of stage 1, tensor rank 0", "tp of stage 1, replica 0"));
}

TEST(FromTimelineTest, MessagesNameTheOtherSide) {
  const TestSchedule test(5);
  const Recording recording = Record(test);
  const Communication* send =
      recording.ranks[0].CommunicationOf(Find(recording, 0, CommunicationKind::kSend));
  const Communication* receive =
      recording.ranks[1].CommunicationOf(Find(recording, 1, CommunicationKind::kReceive));
  EXPECT_EQ(send->peer, 4);
  EXPECT_EQ(receive->peer, 0);
  EXPECT_EQ(send->tag, 0);
  EXPECT_EQ(receive->tag, 0);
  EXPECT_EQ(send->bytes, Bytes(64));
  EXPECT_EQ(send->group, -1);
}

// Neither a free transfer nor one of a measured duration says how many bytes it moves.
TEST(FromTimelineTest, TransfersWithoutBytesSayNone) {
  const TestSchedule test(6);
  ir::Schedule schedule = test.schedule();
  for (ir::Transfer& transfer : schedule.transfers) transfer.bytes = Bytes(0);
  const auto recording = ToRecording(schedule, test.timeline());
  ASSERT_TRUE(recording.ok()) << recording.status();
  const RecordedOp& op = Find(*recording, 0, CommunicationKind::kSend);
  EXPECT_EQ(recording->ranks[0].CommunicationOf(op)->bytes, Bytes(-1));
}

TEST(FromTimelineTest, KernelsWithoutWorkSayNone) {
  const TestSchedule test(6);
  ir::Schedule schedule = test.schedule();
  for (Kernel& kernel : schedule.kernels) kernel.flops = Flops(0), kernel.bytes = Bytes(0);
  const auto recording = ToRecording(schedule, test.timeline());
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_TRUE(recording->ranks[0].works.empty());
}

TEST(FromTimelineTest, AllRanksHaveGroupsAndPeersOfTheirOwn) {
  const TestSchedule test(7);
  const Recording folded = Record(test);
  const Recording all = Record(test, {.all_ranks = true});
  ASSERT_EQ(all.ranks.size(), 8U);
  EXPECT_FALSE(all.folded);
  EXPECT_TRUE(all.remarks.empty());
  for (std::size_t r = 0; r < 8; ++r) {
    EXPECT_EQ(all.ranks[r].rank, static_cast<std::int32_t>(r));
    EXPECT_EQ(all.ranks[r].stands_for, 1);
    EXPECT_EQ(all.ranks[r].ops, folded.ranks[r / 4].ops);
  }
  const RecordedRank& last = all.ranks[3];  // stage 0, replica 1, tensor rank 1
  EXPECT_EQ(last.CommunicationOf(Find(all, 3, CommunicationKind::kSend))->peer, 7);
  std::set<std::string> groups;
  for (const Communication& c : last.communications) {
    if (c.group < 0) continue;
    const CommunicatorGroup& group = all.groups[c.group];
    groups.insert(group.name);
    EXPECT_THAT(group.ranks, ::testing::Contains(3));
  }
  EXPECT_THAT(groups, ElementsAre("dp of stage 0, tensor rank 1", "tp of stage 0, replica 1"));
}

// One entity a GPU, but spans of the first rank of each program alone: the others are not there.
TEST(FromTimelineTest, RanksThatNobodyStandsForAreMissing) {
  const TestSchedule test(8);
  ir::Timeline timeline = test.timeline();
  for (ir::EntityAccount& entity : timeline.entities) entity.gpus = 1;
  const auto recording = ToRecording(test.schedule(), timeline);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_FALSE(recording->folded);
  ASSERT_EQ(recording->remarks.size(), 1U);
  EXPECT_EQ(recording->remarks[0].count, 6);
}

TEST(FromTimelineTest, RefusesTooMany) {
  const TestSchedule test(9);
  const auto refused = [&](const ToRecordingOptions& options) {
    return std::string(ToRecording(test.schedule(), test.timeline(), options).status().message());
  };
  std::size_t operations = 0;
  for (const ir::Program& p : test.schedule().programs) operations += p.operations.size();
  EXPECT_THAT(refused({.most_operations = 5}),
              ::testing::AllOf(HasSubstr(std::to_string(operations)), HasSubstr("at most 5")));
  EXPECT_THAT(refused({.all_ranks = true, .most_operations = 5}),
              ::testing::AllOf(HasSubstr(std::to_string(4 * operations)), HasSubstr("all-ranks")));
  // A world that none can list: stage 0 alone has spans, of its first rank.
  ir::Schedule large = test.schedule();
  large.world.dp = 1 << 28;
  ir::Timeline first = test.timeline();
  std::erase_if(first.spans, [](const ir::Span& span) { return span.rank != 0; });
  EXPECT_THAT(std::string(ToRecording(large, first, {.all_ranks = true}).status().message()),
              HasSubstr("1073741824 ranks, but at most 100000"));
  EXPECT_THAT(std::string(ToRecording(large, first).status().message()),
              HasSubstr("recorded ranks have more than"));
}

TEST(FromTimelineTest, RefusesWrongTimelines) {
  const TestSchedule test(10);
  const auto refused = [&](auto change) {
    ir::Timeline timeline = test.timeline();
    change(timeline);
    return std::string(ToRecording(test.schedule(), timeline).status().message());
  };
  EXPECT_THAT(refused([](ir::Timeline& t) { t.spans.clear(); }), HasSubstr("no spans"));
  EXPECT_THAT(refused([](ir::Timeline& t) { t.spans.pop_back(); }), HasSubstr("rank 4"));
  EXPECT_THAT(refused([](ir::Timeline& t) { t.step = Picoseconds(-1); }), HasSubstr("-1 ps"));
  EXPECT_THAT(refused([](ir::Timeline& t) {
                std::rotate(t.spans.begin(),
                            std::find_if(t.spans.begin(), t.spans.end(),
                                         [](const ir::Span& s) { return s.rank == 4; }),
                            t.spans.end());
              }),
              HasSubstr("rank 0 behind those of rank 4"));
  EXPECT_THAT(refused([](ir::Timeline& t) {
                for (ir::Span& span : t.spans) span.end = Picoseconds(1'000'000'000'000);
              }),
              HasSubstr("before its stream's previous operation ends"));
}

}  // namespace
}  // namespace optimus::traces
