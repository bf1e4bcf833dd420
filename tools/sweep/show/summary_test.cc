#include "tools/sweep/show/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/sweep/show/testing_show.h"

namespace optimus::sweep {
namespace {

class SummaryTest : public ::testing::Test {
 protected:
  Database database_ = MakeTestingPlans(":memory:", {3072}).value();
  About about_ = ReadAbout(database_).value();
};

TEST_F(SummaryTest, EveryPointIsCountedOnce) {
  const Summary summary = Summarize(database_, about_, {"strategy = 'OPTIMUS'", false}).value();
  EXPECT_EQ(summary.points, 240);
  EXPECT_EQ(summary.counts.done(), 240);
  EXPECT_EQ(summary.counts.impossible, 3 * 4 * 3);  // pp 1 with V of 2, 6 and 12
  EXPECT_EQ(summary.counts.failed, 4);              // tp 1, V 12, OPTIMUS, pp from 2 on
  EXPECT_EQ(summary.counts.ok, 240 - 36 - 4);
  EXPECT_EQ(summary.selected, 80 - 12 - 4);
  EXPECT_GT(summary.left_out, 0);
  EXPECT_LT(summary.left_out, summary.counts.does_not_fit);
  EXPECT_EQ(summary.versions, std::vector<std::string>{OPTIMUS_VERSION});
  EXPECT_EQ(summary.profile_hashes.size(), 1);
}

TEST_F(SummaryTest, ASweepThatRuns) {
  ASSERT_TRUE(database_.Execute("DELETE FROM results WHERE hash = 'hash7'").ok());
  ASSERT_TRUE(database_.Execute("UPDATE results SET version = '0.0.9' WHERE hash = 'hash5'").ok());
  // What is refused before its profile is read has none.
  ASSERT_TRUE(database_.Execute("UPDATE results SET profile_hash = '' WHERE hash = 'hash5'").ok());
  const Summary summary = Summarize(database_, about_, {}).value();
  EXPECT_EQ(summary.profile_hashes.size(), 1);
  EXPECT_EQ(summary.points, 240);
  EXPECT_EQ(summary.counts.done(), 239);
  EXPECT_EQ(summary.versions, (std::vector<std::string>{"0.0.9", OPTIMUS_VERSION}));
}

TEST_F(SummaryTest, ErrorsAreGroupedWhateverTheirNumbers) {
  const std::vector<ErrorGroup> groups = GroupErrors(database_, about_, {}).value();
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].status, kStatusImpossible);
  EXPECT_EQ(groups[0].points, 36);
  EXPECT_EQ(groups[0].example, 1);
  EXPECT_THAT(groups[0].error, ::testing::StartsWith("plan.virtual_stages: 2, but"));
  EXPECT_EQ(ToText(groups[0].axes[4]), "2");
  EXPECT_EQ(groups[1].status, kStatusFailed);
  EXPECT_EQ(groups[1].points, 4);
  EXPECT_TRUE(GroupErrors(database_, about_, {"pp = 2 and tp = 2", false})->empty());
}

}  // namespace
}  // namespace optimus::sweep
