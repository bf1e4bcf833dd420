#include "traces/spans_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace optimus::traces {
namespace {

Recording Small() {
  Recording recording;
  recording.names = {"gemm", "a,\"b\"\n=c", "all-reduce", "send"};
  recording.groups.push_back({"tp 0", "", "tp", {0, 1}, 2});
  RecordedRank rank;
  rank.rank = 3;
  rank.stands_for = 4;
  rank.lanes = {{"compute"}, {"stream 7, second"}};
  rank.works = {{2.5e12, Bytes(100)}};
  rank.communications = {{CommunicationKind::kAllReduce, 0, -1, 0, -1, Bytes(4096)},
                         {CommunicationKind::kSend, -1, 5, -1, 9, Bytes(-1)}};
  rank.dependencies = {{0}, {1}};
  rank.ops = {{Picoseconds(0), Picoseconds(1), 0, 0, -1, 0, 0, 0, OpKind::kCompute},
              {kUntimed, kUntimed, 0, 1, -1, -1, 0, 2, OpKind::kHost},
              {Picoseconds(1'000'001), Picoseconds(2'500'000'000'000), 1, 2, 0, -1, 0, 1,
               OpKind::kCommunication},
              {Picoseconds(0), Picoseconds(0), 1, 3, 1, -1, 0, 0, OpKind::kCommunication}};
  recording.ranks.push_back(rank);
  return recording;
}

TEST(SpansCsvTest, OneLineAnOperation) {
  const Recording recording = Small();
  ASSERT_TRUE(CheckRecording(recording).ok());
  EXPECT_EQ(
      WriteCsv(recording),
      "rank,stands_for,lane,op,name,kind,communication,group,group_size,peer,bytes,flops,start_us,"
      "end_us,duration_us,dependencies\n"
      "3,4,compute,0,gemm,compute,,,,,100,2500000000000,0.000000,0.000001,0.000001,0\n"
      "3,4,compute,1,\"a,\"\"b\"\" =c\",host,,,,,,,,,,2\n"
      "3,4,\"stream 7, second\",2,all-reduce,communication,all_reduce,tp 0,2,,4096,,1.000001,"
      "2500000.000000,2499998.999999,1\n"
      "3,4,\"stream 7, second\",3,send,communication,send,,,5,,,0.000000,0.000000,0.000000,0\n");
}

TEST(SpansCsvTest, AnEmptyTraceHasAHeader) {
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(WriteCsv({}), '\n')).size(), 2U);
}

}  // namespace
}  // namespace optimus::traces
