#include "traces/perfetto_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "traces/from_timeline.h"
#include "traces/test_schedule.h"
#include "traces/trace_reader.h"

namespace optimus::traces {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Recording Record(unsigned seed) {
  const TestSchedule test(seed);
  auto recording = ToRecording(test.schedule(), test.timeline());
  EXPECT_TRUE(recording.ok()) << recording.status();
  return *std::move(recording);
}

std::string Export(const Recording& recording) {
  const absl::Status checked = CheckRecording(recording);
  EXPECT_TRUE(checked.ok()) << checked;
  auto trace = ToPerfetto(recording);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.value_or("");
}

RecordedOp Op(std::int64_t start_ps, std::int64_t end_ps, std::int32_t lane = 0,
              OpKind kind = OpKind::kCompute) {
  RecordedOp op;
  op.start = Picoseconds(start_ps);
  op.end = Picoseconds(end_ps);
  op.lane = lane;
  op.kind = kind;
  return op;
}

// A host thread and a stream, as a profiler sees them.
Recording Foreign() {
  Recording recording;
  recording.format = "kineto";
  recording.names = {"call", "kernel"};
  RecordedRank rank;
  rank.rank = 2;
  rank.clock_origin_ns = 1'700'000'000'000'000'000;
  rank.lanes = {{"thread 1", LaneKind::kHostThread}, {"stream 7"}};
  rank.ops = {Op(0, 9'000'000, 0, OpKind::kHost), Op(1'000'000, 2'000'000, 0, OpKind::kHost),
              Op(3'000'000, 5'000'000, 1), Op(4'000'000, 6'000'000, 1),
              Op(7'000'000, 7'000'400, 1)};
  for (std::size_t i = 2; i < 5; ++i) rank.ops[i].name = 1;
  rank.dependencies = {{1, DependencyKind::kLaunch}, {3, DependencyKind::kAfter}};
  rank.ops[2].dependency_count = 1;
  rank.ops[4].first_dependency = 1;
  rank.ops[4].dependency_count = 1;
  recording.ranks.push_back(rank);
  return recording;
}

TEST(PerfettoRecordingTest, EveryOperationOfATimelineIsOneSlice) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Recording recording = Record(seed);
    const TraceReader reader(Export(recording));
    for (const RecordedRank& rank : recording.ranks) {
      std::map<std::string, std::size_t> next;
      for (const RecordedOp& op : rank.ops) {
        const Track& track = reader.Find(absl::StrCat("rank ", rank.rank, " (for 4 ranks)"),
                                         rank.lanes[op.lane].name);
        const Slice& slice = track.slices.at(next[track.name]++);
        EXPECT_EQ(slice.name, recording.names[op.name]);
        EXPECT_LE(std::abs(static_cast<std::int64_t>(slice.start_ns) * 1000 - op.start.value()),
                  500);
        EXPECT_LE(std::abs(static_cast<std::int64_t>(slice.end_ns) * 1000 - op.end.value()), 500);
        if (op.duration() < Picoseconds(1'000'000)) {
          EXPECT_EQ(slice.arguments.at("duration_ps"), std::to_string(op.duration().value()));
        }
      }
    }
  }
}

TEST(PerfettoRecordingTest, CommunicationSaysWithWhom) {
  const Recording recording = Record(4);
  const TraceReader reader(Export(recording));
  const Slice& gather = reader.Find("rank 4 (for 4 ranks)", "tensor parallel").slices[0];
  EXPECT_EQ(gather.category, "all_gather");
  EXPECT_EQ(gather.arguments.at("group"), "tp of stage 1, replica 0");
  EXPECT_EQ(gather.arguments.at("group_size"), "2");
  EXPECT_EQ(gather.arguments.at("bytes"), "1000");
  const Slice& send = reader.Find("rank 0 (for 4 ranks)", "forward send").slices[0];
  EXPECT_EQ(send.category, "send");
  EXPECT_EQ(send.arguments.at("peer"), "4");
  EXPECT_EQ(send.arguments.at("bytes"), "64");
}

// An arrow leads from every send to its receive, unless both are at one instant.
TEST(PerfettoRecordingTest, ArrowsLeadFromSendToReceive) {
  const TraceReader reader(Export(Record(5)));
  const Track& sends = reader.Find("rank 0 (for 4 ranks)", "forward send");
  const Track& receives = reader.Find("rank 4 (for 4 ranks)", "forward receive");
  ASSERT_EQ(sends.slices.size(), receives.slices.size());
  std::size_t arrows = 0;
  for (std::size_t i = 0; i < sends.slices.size(); ++i) {
    if (sends.slices[i].start_ns >= receives.slices[i].end_ns) continue;
    std::vector<std::uint64_t> both;
    std::set_intersection(sends.slices[i].flows_from.begin(), sends.slices[i].flows_from.end(),
                          receives.slices[i].flows_to.begin(), receives.slices[i].flows_to.end(),
                          std::back_inserter(both));
    EXPECT_EQ(both.size(), 1U) << i;
    ++arrows;
  }
  EXPECT_GT(arrows, 0U);
}

// Every arrow has one start and one end, and does not lead back in time.
TEST(PerfettoRecordingTest, ArrowsHaveTwoEnds) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const TraceReader reader(Export(Record(seed)));
    std::map<std::uint64_t, const Slice*> from, to;
    for (const auto& [uuid, track] : reader.tracks()) {
      for (const Slice& slice : track.slices) {
        for (const std::uint64_t id : slice.flows_from)
          EXPECT_TRUE(from.emplace(id, &slice).second);
        for (const std::uint64_t id : slice.flows_to) EXPECT_TRUE(to.emplace(id, &slice).second);
      }
    }
    EXPECT_GT(from.size(), 0U);
    ASSERT_EQ(from.size(), to.size());
    for (const auto& [id, slice] : from) {
      ASSERT_EQ(to.count(id), 1U);
      EXPECT_LT(slice->start_ns, to[id]->end_ns);
    }
  }
}

TEST(PerfettoRecordingTest, OverlappingKernelsGoToAnotherTrackAndCallsNest) {
  const TraceReader reader(Export(Foreign()));
  const Track& thread = reader.Find("rank 2", "thread 1");
  ASSERT_EQ(thread.slices.size(), 2U);
  EXPECT_EQ(thread.slices[0].depth, 1U);
  EXPECT_EQ(thread.slices[0].category, "host");
  EXPECT_EQ(thread.slices[0].end_ns, 2000U);  // from the clock's origin
  const Track& stream = reader.Find("rank 2", "stream 7");
  ASSERT_EQ(stream.slices.size(), 2U);
  EXPECT_EQ(stream.slices[1].arguments.at("duration_ps"), "400");
  const Track& second = reader.Find("rank 2", "stream 7, track 2");
  ASSERT_EQ(second.slices.size(), 1U);
  EXPECT_EQ(second.slices[0].start_ns, 4000U);
  // The launch crosses lanes; a dependency within one needs no arrow.
  EXPECT_EQ(thread.slices[0].flows_from, stream.slices[0].flows_to);
  EXPECT_EQ(stream.slices[0].flows_to.size(), 1U);
  EXPECT_THAT(stream.slices[1].flows_to, IsEmpty());
}

TEST(PerfettoRecordingTest, ClocksCountFromTheEarliest) {
  Recording recording = Foreign();
  recording.ranks.push_back(recording.ranks[0]);
  recording.ranks[1].rank = 3;
  recording.ranks[1].clock_origin_ns += 500;
  const TraceReader near(Export(recording));
  EXPECT_EQ(near.Find("rank 2", "stream 7").slices[0].start_ns, 3000U);
  EXPECT_EQ(near.Find("rank 3", "stream 7").slices[0].start_ns, 3500U);
  recording.ranks[1].clock_origin_ns = std::numeric_limits<std::int64_t>::min();
  const TraceReader far(Export(recording));
  EXPECT_EQ(far.Find("rank 3", "stream 7").slices[0].start_ns, 3000U);
  recording.ranks[1].ops[4].end = Picoseconds(std::numeric_limits<std::int64_t>::max());
  EXPECT_NE(Export(recording), "");
}

TEST(PerfettoRecordingTest, OperationsWithoutTimesAreNotDrawn) {
  Recording recording = Foreign();
  for (RecordedOp& op : recording.ranks[0].ops) {
    if (op.lane == 1) op.start = op.end = kUntimed;
  }
  EXPECT_EQ(CountUntimed(recording), 3);
  const TraceReader reader(Export(recording));
  EXPECT_EQ(reader.tracks().size(), 1U);
  for (RecordedOp& op : recording.ranks[0].ops) op.start = op.end = kUntimed;
  const absl::Status refused = ToPerfetto(recording).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("none of the trace's 5 operations has a time"));
  EXPECT_THAT(std::string(ToPerfetto({}).status().message()), HasSubstr("no operations"));
}

TEST(PerfettoRecordingTest, SameInputSameBytes) { EXPECT_EQ(Export(Record(3)), Export(Record(3))); }

}  // namespace
}  // namespace optimus::traces
