#include "tools/sweep/run/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tools/sweep/spec/testing_files.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

// 3 schedules, of which two names are one, times batches; PP 3 does not make 4 GPUs.
constexpr char kSweep[] = R"(
  strategies { name: "a" }
  strategies { name: "a_too" settings { field: "name" value: "x" } }
  strategies { name: "gpipe" settings { field: "plan.schedule" value: "GPIPE" } }
  axes { field: "plan.pipeline_parallel" numbers: [4, 3] }
  axes { field: "batch.global_batch" numbers: [8, 16, 24] })";

absl::Status Nothing(const Point& /*point*/, bool /*first*/) { return absl::OkStatus(); }

TEST(SurveyTest, CountsWhatIsDifferentAndWhatCannotBe) {
  const TestingSweepFiles files;
  LoadedSweep sweep = files.Load(kSweep).value();
  const Survey survey = SurveyPoints(sweep, {}, Nothing).value();
  EXPECT_EQ(survey.points, 18);
  EXPECT_EQ(survey.all_simulations, 12);
  EXPECT_EQ(survey.simulations.size(), 12);
  EXPECT_EQ(survey.impossible_points, 9);
  ASSERT_EQ(survey.problems.size(), 1);
  EXPECT_EQ(survey.problems[0].points, 9);
  EXPECT_EQ(survey.problems[0].first_point, 3);
  EXPECT_THAT(survey.problems[0].example, HasSubstr("hardware.gpus"));
}

TEST(SurveyTest, ShardsAreAPartition) {
  const TestingSweepFiles files;
  LoadedSweep sweep = files.Load(kSweep).value();
  const Survey whole = SurveyPoints(sweep, {}, Nothing).value();
  std::set<std::string> hashes;
  std::set<std::int64_t> points;
  for (std::int64_t i = 0; i < 5; ++i) {
    const Survey part = SurveyPoints(sweep, {i, 5}, [&](const Point& point, bool /*first*/) {
                          EXPECT_TRUE(points.insert(point.number).second);
                          return absl::OkStatus();
                        }).value();
    for (const UniquePoint& one : part.simulations) EXPECT_TRUE(hashes.insert(one.hash).second);
    EXPECT_EQ(part.sweep_hash, whole.sweep_hash);
    EXPECT_EQ(part.all_points, 18);
  }
  EXPECT_EQ(hashes.size(), 12);
  EXPECT_EQ(points.size(), 18);
}

}  // namespace
}  // namespace optimus::sweep
