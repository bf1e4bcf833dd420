#include "executor/watch/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace optimus::executor {
namespace {

using ::testing::ElementsAre;

TEST(ReportLinesTest, RanksThatAreAtDifferentThingsHaveALineEach) {
  EXPECT_THAT(ReportLines({}), ElementsAre());
  EXPECT_THAT(ReportLines({{0, "a", "compute: fc1 runs"}, {1, "a", "compute: fc2 runs"}}),
              ElementsAre("rank 0 (a): compute: fc1 runs", "rank 1 (a): compute: fc2 runs"));
}

TEST(ReportLinesTest, RanksOfAHostThatAreAtTheSameAreTogether) {
  EXPECT_THAT(ReportLines({{0, "a", "x"},
                           {1, "a", "y"},
                           {2, "a", "x"},
                           {3, "a", "x"},
                           {4, "a", "x"},
                           {5, "b", "x"},
                           {6, "b", "x"}}),
              ElementsAre("ranks 0, 2-4 (a): x", "rank 1 (a): y", "ranks 5, 6 (b): x"));
}

TEST(ReportLinesTest, TheRanksThatTheyNameMayDiffer) {
  EXPECT_THAT(ReportLines({{4, "a", "edge waits for rank 0; rank 9 is next"},
                           {5, "a", "edge waits for rank 1; rank 9 is next"},
                           {6, "a", "edge waits for rank 2; rank 9 is next"}}),
              ElementsAre("ranks 4-6 (a): edge waits for ranks 0-2; rank 9 is next"));
  EXPECT_THAT(ReportLines({{0, "a", "to rank 12"}, {1, "a", "to rank 3"}}),
              ElementsAre("ranks 0, 1 (a): to ranks 3, 12"));
}

// What is no single rank must be the same.
TEST(ReportLinesTest, OtherNumbersTellRanksApart) {
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"in its collective of ranks 0, 1", "in its collective of ranks 2, 3"},
           {"operation 7", "operation 8"},
           {"crank 1", "crank 2"},
           {"rank 1", "rank"},
           {"rank 99999999999", "rank 99999999998"}}) {
    EXPECT_THAT(
        ReportLines({{0, "a", one}, {1, "a", other}}),
        ElementsAre(absl::StrCat("rank 0 (a): ", one), absl::StrCat("rank 1 (a): ", other)));
  }
}

TEST(SlownessHintTest, NamesCoresOnlyWhereTheyAreTooFew) {
  EXPECT_EQ(SlownessHint(2, 2), "hint: raise --timeout if an operation can take that long");
  EXPECT_EQ(SlownessHint(2, 0), SlownessHint(2, 2));
  EXPECT_EQ(SlownessHint(8, 2), absl::StrCat(SlownessHint(2, 2), " (8 ranks share 2 cores)"));
}

}  // namespace
}  // namespace optimus::executor
