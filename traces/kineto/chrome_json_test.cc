#include "traces/kineto/chrome_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "traces/kineto/kineto.h"

namespace optimus::traces {
namespace {

using ::testing::HasSubstr;

// Random recordings: everything that a Recording can say, in the layout that importers make.
class RandomRecording {
 public:
  explicit RandomRecording(std::uint32_t seed) : random_(seed) {}

  Recording Make() {
    Recording recording;
    recording.format = "optimus timeline";
    recording.world = Whole(0, 5000);
    recording.messages = Coin() ? MessageRule::kEager : MessageRule::kRendezvous;
    recording.waits_inside = Coin();
    recording.one_clock = Coin();
    recording.folded = Coin();
    for (int i = Whole(1, 5); i > 0; --i) recording.names.push_back(Text(i));
    for (int i = Whole(0, 3); i > 0; --i) {
      recording.groups.push_back({Text(i), Text(1), "dp", {Whole(0, 9), 12}, Whole(0, 64)});
    }
    for (int i = Whole(0, 2); i > 0; --i) {
      recording.remarks.push_back({Text(i), Text(2), Whole(-1, 9), Text(3), Time(), Whole(1, 99)});
      recording.steps.push_back({Whole(0, 999), Whole(0, 9), -Time(), Time()});
    }
    for (int i = 0, ranks = Whole(0, 3); i < ranks; ++i) AddRank(recording, 3 * i);
    return recording;
  }

 private:
  int Whole(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  bool Coin() { return Whole(0, 1) == 1; }
  Picoseconds Time() {
    return Picoseconds(
        std::uniform_int_distribution<std::int64_t>(0, std::int64_t{1} << Whole(1, 61))(random_));
  }
  std::string Text(int salt) {
    static constexpr const char* kTexts[] = {
        "gemm", "a \"quoted\" \\ name", "\n\t\x01\x7f", "größe", "", "void k<4>(x)"};
    return absl::StrCat(kTexts[Whole(0, 5)], salt);
  }

  void AddRank(Recording& recording, std::int32_t number) {
    RecordedRank rank;
    rank.rank = number;
    rank.stands_for = Whole(1, 400);
    rank.source = "trace.json";
    rank.clock_origin_ns = std::int64_t{1'700'000'000'000'000'000} + Whole(0, 1'000'000'000);
    rank.step_start = Time();
    rank.step_end = rank.step_start + Picoseconds(5);
    for (int i = Whole(1, 3); i > 0; --i) {
      rank.lanes.push_back(
          {Text(i), Coin() ? LaneKind::kStream : LaneKind::kHostThread, Coin(), Whole(-5, 99)});
    }
    for (int i = 0, ops = Whole(0, 30); i < ops; ++i) AddOp(recording, rank, i, ops);
    recording.ranks.push_back(rank);
  }

  void AddOp(const Recording& recording, RecordedRank& rank, int id, int ops) {
    RecordedOp op;
    op.kind = static_cast<OpKind>(Whole(0, 3));
    op.lane = Whole(0, static_cast<int>(rank.lanes.size()) - 1);
    op.name = Whole(0, static_cast<int>(recording.names.size()) - 1);
    if (Whole(0, 9) > 0) {
      op.start = Time();
      op.end = op.start + Time();
    }
    op.first_dependency = static_cast<std::uint32_t>(rank.dependencies.size());
    op.dependency_count = static_cast<std::uint32_t>(id > 0 ? Whole(0, 3) : 0);
    for (std::uint32_t i = 0; i < op.dependency_count; ++i) {
      rank.dependencies.push_back({static_cast<std::uint32_t>(Whole(0, ops - 1)),
                                   static_cast<DependencyKind>(Whole(0, 3))});
    }
    if (Coin()) {
      op.work = static_cast<std::int32_t>(rank.works.size());
      rank.works.push_back({Whole(0, 1'000'000) * 1.1e13 / 3, Bytes(Whole(0, 1'000'000))});
    }
    if (op.kind == OpKind::kCommunication) {
      op.communication = static_cast<std::int32_t>(rank.communications.size());
      rank.communications.push_back(
          {static_cast<CommunicationKind>(Whole(0, kCommunicationKindCount - 1)),
           Whole(-1, static_cast<int>(recording.groups.size()) - 1), Whole(-1, 9), Whole(-1, 99),
           Whole(-1, 99), Bytes(Whole(-1, 999))});
    }
    rank.ops.push_back(op);
  }

  std::mt19937 random_;
};

absl::StatusOr<Recording> Read(const std::string& text) {
  return ReadKinetoText(text, "trace.json", {});
}

TEST(ChromeJson, WhatIsWrittenIsReadBackEqual) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Recording recording = RandomRecording(seed).Make();
    const absl::StatusOr<std::string> text = ChromeJsonText(recording);
    ASSERT_TRUE(text.ok()) << text.status();
    const absl::StatusOr<Recording> again = Read(*text);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << *text;
    ASSERT_EQ(*again, recording) << "seed " << seed << "\n" << *text;
    EXPECT_EQ(*ChromeJsonText(*again), *text);
  }
}

Recording Simple() {
  Recording recording;
  recording.format = "optimus timeline";
  recording.names = {"gemm", "dp all-reduce"};
  recording.groups = {{"dp", "", "dp", {8, 16}, 2}};
  RecordedRank rank;
  rank.rank = 8;
  rank.stands_for = 384;
  rank.source = "trace.json";
  rank.lanes = {{"compute", LaneKind::kStream, true, 0}};
  RecordedOp gemm;
  gemm.start = Picoseconds(1);
  gemm.end = Picoseconds(2'000'001);
  RecordedOp reduce = gemm;
  reduce.name = 1;
  reduce.kind = OpKind::kCommunication;
  reduce.communication = 0;
  reduce.dependency_count = 1;
  rank.communications.push_back({CommunicationKind::kAllReduce, 0, -1, 4, -1, Bytes(1024)});
  rank.dependencies.push_back({0, DependencyKind::kAfter});
  rank.ops = {gemm, reduce};
  recording.ranks.push_back(rank);
  return recording;
}

TEST(ChromeJson, OtherToolsFindWhatKinetoWouldSay) {
  const std::string text = *ChromeJsonText(Simple());
  EXPECT_THAT(text, HasSubstr("rank 8 (stands for 384 GPUs)"));
  EXPECT_THAT(text, HasSubstr(R"("ph":"X","cat":"kernel","name":"gemm","pid":8,"tid":0,)"
                              R"("ts":0.000001,"dur":2.000000)"));
  EXPECT_THAT(text, HasSubstr(R"("Collective name":"allreduce","In msg nelems":1024)"));
  EXPECT_THAT(text, HasSubstr(R"("Process Group Ranks":"[8, 16]")"));
  EXPECT_THAT(text, HasSubstr(R"("after":[[0,"after"]])"));
}

TEST(ChromeJson, AnotherFormatVersionIsRefused) {
  const std::string text = absl::StrReplaceAll(*ChromeJsonText(Simple()),
                                               {{"\"format_version\":1", "\"format_version\":2"}});
  EXPECT_THAT(Read(text).status().message(), HasSubstr("format_version 2 is not known"));
}

TEST(ChromeJson, EditedFilesAreRefusedWhereTheyAreWrong) {
  const std::string text = *ChromeJsonText(Simple());
  const auto edited = [&](const char* from, const char* to) {
    return Read(absl::StrReplaceAll(text, {{from, to}})).status();
  };
  EXPECT_THAT(edited("\"op\":1", "\"op\":2").message(), HasSubstr("\"op\" is 2; 1 would follow"));
  EXPECT_THAT(edited("[[0,\"after\"]]", "[[7,\"after\"]]").message(), HasSubstr("dependency"));
  EXPECT_THAT(edited("[[0,\"after\"]]", "[[0,\"soon\"]]").message(), HasSubstr("another type"));
  EXPECT_THAT(edited("\"pid\":8,\"tid\":0,\"ts\"", "\"pid\":9,\"tid\":0,\"ts\"").message(),
              HasSubstr("no rank of the header"));
  EXPECT_THAT(edited("\"folded\":false", "\"folded\":0").message(), HasSubstr("folded"));
  EXPECT_THAT(edited("\"dur\":2.000000", "\"dur\":-2.000000").message(), HasSubstr("out of range"));
}

TEST(ChromeJson, WhatJsonCannotSayIsNotWritten) {
  Recording recording = Simple();
  recording.ranks[0].works.push_back({std::numeric_limits<double>::infinity(), Bytes(0)});
  recording.ranks[0].ops[0].work = 0;
  EXPECT_THAT(ChromeJsonText(recording).status().message(), HasSubstr("rank 8, operation 0"));
  recording.ranks[0].ops[0].work = 5;
  EXPECT_FALSE(ChromeJsonText(recording).ok());
}

}  // namespace
}  // namespace optimus::traces
