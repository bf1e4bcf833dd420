#include "tools/trace_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optimus::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using traces::Communication;
using traces::CommunicationKind;
using traces::OpKind;
using traces::RecordedOp;
using traces::RecordedRank;
using traces::Recording;
using Json = nlohmann::json;

RecordedOp Op(std::int64_t start, std::int64_t end, std::int32_t lane,
              std::int32_t communication = -1) {
  RecordedOp op;
  op.start = Picoseconds(start);
  op.end = Picoseconds(end);
  op.lane = lane;
  op.communication = communication;
  op.kind = communication < 0 ? OpKind::kCompute : OpKind::kCommunication;
  return op;
}

// Two of four ranks, a step of 100 us each.
Recording TwoRanks() {
  Recording recording;
  recording.format = "kineto";
  recording.world = 4;
  recording.names = {"op"};
  recording.groups = {{"7", "tensor", "tp", {0, 1}, 2}, {"8", "", "", {}, 0}};
  for (const std::int32_t number : {0, 2}) {
    RecordedRank rank;
    rank.rank = number;
    rank.source = number == 0 ? "a.json" : "b.json";
    rank.step_end = Picoseconds(100'000'000 + number);
    rank.lanes = {{"stream 7"}, {"stream 9", traces::LaneKind::kStream, false}};
    rank.communications = {{CommunicationKind::kAllReduce, 0, -1, -1, -1, Bytes(1 << 30)},
                           {CommunicationKind::kAllReduce, 0, -1, -1, -1, Bytes(-1)},
                           {CommunicationKind::kSend, -1, -1, -1, -1, Bytes(8)},
                           {CommunicationKind::kUnknown}};
    rank.ops = {
        Op(0, 40'000'000, 0),    Op(30'000'000, 60'000'000, 0),    Op(70'000'000, 80'000'000, 0),
        Op(0, 10'000'000, 1, 0), Op(10'000'000, 20'000'000, 1, 1), Op(20'000'000, 30'000'000, 1, 2),
        Op(-1, -1, 1, 3)};
    recording.steps.push_back({5, number, Picoseconds(0), rank.step_end});
    recording.ranks.push_back(std::move(rank));
  }
  recording.steps.push_back({4, 0, Picoseconds(0), Picoseconds(50'000'000)});
  recording.remarks.push_back(
      {"kernel without a launch", "starts when its stream is free", 2, "gemm", Picoseconds(5), 3});
  return recording;
}

TEST(TraceInfoTest, CountsWhatIsThere) {
  const TraceInfo info = InfoOf(TwoRanks());
  EXPECT_THAT(info.files, ElementsAre("a.json", "b.json"));
  EXPECT_THAT(info.ranks, ElementsAre(0, 2));
  EXPECT_THAT(info.missing, ElementsAre(1, 3));
  EXPECT_EQ(info.missing_count, 2);
  EXPECT_EQ(info.step, Picoseconds(100'000'002));
  EXPECT_EQ(info.operations, 14);
  EXPECT_EQ(info.untimed, 2);
  ASSERT_EQ(info.steps.size(), 2U);
  EXPECT_EQ(info.steps[0].number, 4);
  EXPECT_EQ(info.steps[1].ranks, 2);
  EXPECT_EQ(info.steps[1].shortest, Picoseconds(100'000'000));
  EXPECT_EQ(info.steps[1].longest, Picoseconds(100'000'002));
}

// Time that two operations share is busy once.
TEST(TraceInfoTest, LanesAreBusyWhereAnythingRuns) {
  const TraceInfo info = InfoOf(TwoRanks());
  ASSERT_EQ(info.lanes.size(), 4U);
  EXPECT_EQ(info.lanes[0].operations, 3);
  EXPECT_EQ(info.lanes[0].busy, Picoseconds(70'000'000));
  EXPECT_EQ(info.lanes[3].rank, 2);
  EXPECT_EQ(info.lanes[3].untimed, 1);
  EXPECT_EQ(info.lanes[3].busy, Picoseconds(30'000'000));
  EXPECT_FALSE(info.lanes[3].in_order);
}

TEST(TraceInfoTest, GroupsAndKinds) {
  const TraceInfo info = InfoOf(TwoRanks());
  ASSERT_EQ(info.groups.size(), 2U);
  EXPECT_EQ(info.groups[0].size, 2);
  EXPECT_EQ(info.groups[0].recorded, 1);
  EXPECT_EQ(info.groups[0].collectives, 2);
  EXPECT_EQ(info.groups[0].without_bytes, 1);
  EXPECT_EQ(info.groups[0].bytes, Bytes(1 << 30));
  EXPECT_FALSE(info.groups[1].members_known);
  ASSERT_EQ(info.kinds.size(), 3U);
  EXPECT_EQ(info.kinds[0].kind, CommunicationKind::kUnknown);
  EXPECT_EQ(info.kinds[0].without_group, 2);
  EXPECT_EQ(info.kinds[1].kind, CommunicationKind::kAllReduce);
  EXPECT_EQ(info.kinds[1].operations, 4);
  EXPECT_EQ(info.kinds[1].without_bytes, 2);
  EXPECT_EQ(info.kinds[1].time, Picoseconds(40'000'000));
  EXPECT_EQ(info.kinds[2].without_peer, 2);
  EXPECT_EQ(info.kinds[2].without_group, 0);
}

TEST(TraceInfoTest, TextSaysIt) {
  const std::string text = TraceInfoText(InfoOf(TwoRanks()));
  EXPECT_THAT(text, HasSubstr("2 recorded of 4: 0, 2; 2 are missing (1, 3)"));
  EXPECT_THAT(text, HasSubstr("100.000 us, the longest of a rank"));
  EXPECT_THAT(text, HasSubstr("14, with 0 waits that the trace says; 2 have no time"));
  EXPECT_THAT(text, HasSubstr("7 (tensor)"));
  EXPECT_THAT(text, HasSubstr("stream, no order"));
  EXPECT_THAT(text,
              HasSubstr("3 x kernel without a launch: starts when its stream is free; rank 2, "
                        "first gemm"));
}

TEST(TraceInfoTest, JsonSaysTheSame) {
  const Json json = Json::parse(TraceInfoJson(InfoOf(TwoRanks())));
  EXPECT_EQ(json["world"], 4);
  EXPECT_EQ(json["missing_ranks"], Json({1, 3}));
  EXPECT_EQ(json["steps"][1]["number"], 5);
  EXPECT_EQ(json["lanes"][0]["busy_s"], 7e-5);
  EXPECT_EQ(json["groups"][1]["size"], nullptr);
  EXPECT_EQ(json["groups"][1]["recorded"], nullptr);
  EXPECT_EQ(json["communication"][2]["kind"], "send");
  EXPECT_EQ(json["remarks"][0]["count"], 3);
  for (const JsonField& field : TraceInfoJsonFields()) EXPECT_TRUE(json.contains(field.name));
  EXPECT_EQ(json.size(), TraceInfoJsonFields().size());
}

TEST(TraceInfoTest, NothingIsMissingOfAFoldedTrace) {
  Recording recording = TwoRanks();
  recording.folded = true;
  for (RecordedRank& rank : recording.ranks) rank.stands_for = 2;
  const TraceInfo info = InfoOf(recording);
  EXPECT_EQ(info.missing_count, 0);
  EXPECT_THAT(TraceInfoText(info), HasSubstr("they stand for 4 ranks"));
}

// A world that the file makes up, an empty trace, sums at the edge.
TEST(TraceInfoTest, OddTraces) {
  Recording recording = TwoRanks();
  recording.world = std::numeric_limits<std::int32_t>::max();
  const TraceInfo large = InfoOf(recording);
  EXPECT_EQ(large.missing.size(), TraceInfo::kMostMissing);
  EXPECT_THAT(TraceInfoText(large), HasSubstr("2147483645 are missing (1, 3 to"));
  recording.world = 0;
  EXPECT_THAT(TraceInfoText(InfoOf(recording)), HasSubstr("of how many is not said"));
  for (RecordedRank& rank : recording.ranks) {
    for (Communication& c : rank.communications) {
      c.bytes = Bytes(std::numeric_limits<std::int64_t>::max());
    }
    rank.ops[3].end = rank.ops[4].end = Picoseconds(std::numeric_limits<std::int64_t>::max());
  }
  EXPECT_EQ(InfoOf(recording).groups[0].bytes, Bytes(std::numeric_limits<std::int64_t>::max()));
  const TraceInfo empty = InfoOf({});
  EXPECT_THAT(empty.lanes, IsEmpty());
  EXPECT_THAT(TraceInfoText(empty), HasSubstr("no operations"));
  EXPECT_EQ(Json::parse(TraceInfoJson(empty))["step_s"], nullptr);
}

TEST(TraceInfoTest, LongListsAreCutInText) {
  Recording recording = TwoRanks();
  for (int i = 0; i < 100; ++i) {
    recording.groups.push_back({absl::StrCat("g", i), "", "", {}, 0});
    recording.ranks[0].lanes.push_back({absl::StrCat("lane\n", i)});
  }
  const std::string text = TraceInfoText(InfoOf(recording));
  EXPECT_THAT(text, HasSubstr("... and 62 more: --json has all"));
  EXPECT_THAT(text, Not(HasSubstr("g99")));
  EXPECT_THAT(text, HasSubstr("lane\\x0a0"));
}

}  // namespace
}  // namespace optimus::tools
