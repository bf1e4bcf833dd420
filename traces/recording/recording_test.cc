#include "traces/recording/recording.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::traces {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RoleOf, ReadsTheNamesOfTheFrameworks) {
  EXPECT_EQ(RoleOf("3", "DATA_PARALLEL_GROUP"), "dp");
  EXPECT_EQ(RoleOf("4", "TENSOR_MODEL_PARALLEL_GROUP"), "tp");
  EXPECT_EQ(RoleOf("5", "PIPELINE_MODEL_PARALLEL_GROUP"), "pp");
  EXPECT_EQ(RoleOf("6", "EXPERT_MODEL_PARALLEL_GROUP"), "ep");
  EXPECT_EQ(RoleOf("7", "EXPERT_DATA_PARALLEL_GROUP"), "dp");
  EXPECT_EQ(RoleOf("8", "CONTEXT_PARALLEL_GROUP"), "cp");
  EXPECT_EQ(RoleOf("9", "mesh_dp"), "dp");
  EXPECT_EQ(RoleOf("0", "default_pg"), "world");
  EXPECT_EQ(RoleOf("tp", ""), "tp");
  EXPECT_EQ(RoleOf("17", "undefined"), "");
}

Recording OneRank(int rank, const char* op, std::vector<std::int32_t> members) {
  Recording recording;
  recording.format = "test";
  RecordingTables tables(recording);
  RecordedRank one;
  one.rank = rank;
  one.source = std::string("file") + std::to_string(rank);
  one.lanes = {{"stream 7"}};
  RecordedOp kernel;
  kernel.start = Picoseconds(1);
  kernel.end = Picoseconds(2);
  kernel.name = tables.Name(op);
  kernel.kind = OpKind::kCommunication;
  kernel.communication = 0;
  one.ops = {kernel};
  Communication communication;
  communication.kind = CommunicationKind::kAllReduce;
  communication.group = tables.Group({"0", "", "", std::move(members), 0});
  one.communications = {communication};
  recording.ranks = {one};
  return recording;
}

TEST(Join, RenumbersNamesAndGroups) {
  const auto joined = Join({OneRank(3, "b", {3, 1}), OneRank(1, "a", {1, 3})});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_TRUE(CheckRecording(*joined).ok());
  ASSERT_EQ(joined->ranks.size(), 2);
  EXPECT_EQ(joined->ranks[0].rank, 1);
  EXPECT_EQ(joined->names[joined->ranks[0].ops[0].name], "a");
  EXPECT_EQ(joined->names[joined->ranks[1].ops[0].name], "b");
  ASSERT_EQ(joined->groups.size(), 1);
  EXPECT_THAT(joined->groups[0].ranks, ElementsAre(1, 3));
}

TEST(Join, FindsTheRanksOfAGroupThatOnlyOneFileSays) {
  const auto joined = Join({OneRank(0, "a", {}), OneRank(1, "a", {0, 1})});
  ASSERT_TRUE(joined.ok()) << joined.status();
  for (const RecordedRank& rank : joined->ranks) {
    EXPECT_THAT(joined->groups[rank.communications[0].group].ranks, ElementsAre(0, 1));
  }
}

TEST(Join, RefusesTheSameRankTwiceNamingBothFiles) {
  const auto joined = Join({OneRank(1, "a", {}), OneRank(1, "b", {})});
  ASSERT_FALSE(joined.ok());
  EXPECT_THAT(joined.status().message(), HasSubstr("rank 1"));
  EXPECT_THAT(joined.status().message(), HasSubstr("file1"));
}

TEST(Join, RefusesWorldsThatDiffer) {
  Recording a = OneRank(0, "a", {}), b = OneRank(1, "b", {});
  a.world = 8;
  b.world = 16;
  const auto joined = Join({a, b});
  ASSERT_FALSE(joined.ok());
  EXPECT_THAT(joined.status().message(), HasSubstr("world size 16, but file0 has 8"));
}

TEST(Note, CountsEqualRemarksOfARank) {
  Recording recording;
  RecordingTables tables(recording);
  tables.Note({"lost", "none", 0, "x", Picoseconds(1), 1});
  tables.Note({"lost", "none", 0, "y", Picoseconds(2), 1});
  tables.Note({"lost", "none", 1, "z", Picoseconds(3), 1});
  ASSERT_EQ(recording.remarks.size(), 2);
  EXPECT_EQ(recording.remarks[0].count, 2);
  EXPECT_EQ(recording.remarks[0].name, "x");
}

TEST(CheckRecording, RefusesIndicesOutOfRange) {
  Recording recording = OneRank(0, "a", {});
  recording.ranks[0].ops[0].lane = 1;
  EXPECT_FALSE(CheckRecording(recording).ok());
  recording = OneRank(0, "a", {});
  recording.ranks[0].ops[0].end = Picoseconds(0);
  EXPECT_FALSE(CheckRecording(recording).ok());
}

}  // namespace
}  // namespace optimus::traces
