#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/hash.h"
#include "schedule/step/step.h"
#include "tools/sweep/spec/sweep.h"
#include "tools/sweep/spec/testing_files.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

TEST(PointsTest, TheFirstAxisVariesSlowest) {
  const TestingSweepFiles files;
  LoadedSweep sweep = files
                          .Load(R"(
    axes { field: "plan.pipeline_parallel" numbers: [2, 4] }
    axes { field: "batch.global_batch" numbers: [8, 16, 24] }
    derived { field: "hardware.gpus" expression: "pp" })")
                          .value();
  std::vector<std::pair<int, int>> seen;
  for (std::int64_t i = 0; i < sweep.points(); ++i) {
    const Point point = sweep.Make(i).value();
    EXPECT_TRUE(point.problem.ok()) << point.problem;
    EXPECT_EQ(point.number, i);
    EXPECT_EQ(point.experiment.hardware().gpus(), point.experiment.plan().pipeline_parallel());
    EXPECT_EQ(point.columns[2], SqlValue(std::int64_t{point.experiment.hardware().gpus()}));
    seen.emplace_back(point.experiment.plan().pipeline_parallel(),
                      point.experiment.batch().global_batch());
  }
  EXPECT_EQ(seen,
            (std::vector<std::pair<int, int>>{{2, 8}, {2, 16}, {2, 24}, {4, 8}, {4, 16}, {4, 24}}));
}

TEST(PointsTest, AnImpossiblePointSaysWhy) {
  const TestingSweepFiles files;
  LoadedSweep sweep =
      files.Load("axes { field: 'plan.pipeline_parallel' numbers: [4, 3] }").value();
  EXPECT_TRUE(sweep.Make(0)->problem.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(sweep.Make(1)->problem));
  EXPECT_THAT(std::string(sweep.Make(1)->problem.message()), HasSubstr("hardware.gpus"));
}

TEST(PointsTest, ADerivedValueThatIsNoneMakesItsPointImpossible) {
  const TestingSweepFiles files;
  LoadedSweep sweep = files
                          .Load(R"(
    axes { field: "plan.pipeline_parallel" numbers: [4, 1] }
    derived { field: "hardware.gpus" expression: "pp / (pp - 1) * 3.0" })")
                          .value();
  EXPECT_THAT(std::string(sweep.Make(1)->problem.message()), HasSubstr("nothing (NULL)"));
  EXPECT_EQ(sweep.Make(1)->columns[1], SqlValue());
  LoadedSweep half = files
                         .Load(
                             "axes { field: 'plan.pipeline_parallel' numbers: 4 }"
                             "derived { field: 'hardware.gpus' expression: 'pp / 8.0' }")
                         .value();
  EXPECT_THAT(std::string(half.Make(0)->problem.message()), HasSubstr("0.5"));
}

TEST(PointsTest, EqualPointsHaveEqualHashes) {
  const TestingSweepFiles files;
  // Of one data-parallel replica the batch of two is the same whatever "name" says.
  LoadedSweep sweep = files
                          .Load(R"(
    strategies { name: "a" settings { field: "name" value: "x" } }
    strategies { name: "b" settings { field: "name" value: "y" } }
    strategies { name: "c" settings { field: "plan.schedule" value: "GPIPE" } }
    strategies { name: "d" settings { field: "profile.nic.bandwidth_gb_per_s" value: "10" } })")
                          .value();
  EXPECT_EQ(sweep.Make(0)->hash, sweep.Make(1)->hash);
  std::set<std::string> hashes;
  for (std::int64_t i = 1; i < 4; ++i) hashes.insert(sweep.Make(i)->hash);
  EXPECT_EQ(hashes.size(), 3);
}

TEST(PointsTest, ProfilesChange) {
  const TestingSweepFiles files;
  LoadedSweep sweep =
      files.Load("axes { field: 'profile.nic.bandwidth_gb_per_s' numbers: [12.5, 100, -1] }")
          .value();
  EXPECT_EQ(sweep.columns()[0].name, "nic_gb_per_s");
  EXPECT_EQ(sweep.columns()[0].unit, "GB/s");
  EXPECT_EQ(sweep.Make(0)->profile.nic().bandwidth_gb_per_s().value(), 12.5);
  EXPECT_EQ(sweep.Make(1)->profile.nic().bandwidth_gb_per_s().value(), 100);
  EXPECT_THAT(std::string(sweep.Make(2)->problem.message()),
              HasSubstr("profile.nic.bandwidth_gb_per_s"));
}

TEST(PointsTest, SeedsSlowGpusDown) {
  const TestingSweepFiles files;
  LoadedSweep sweep =
      files.Load("stragglers { share: 0.5 factor_from: 1.1 factor_to: 1.2 } seeds: [1, 2]").value();
  EXPECT_EQ(sweep.Make(0)->experiment.hardware().slow_gpus_size(), 2);
  EXPECT_NE(sweep.Make(0)->hash, sweep.Make(1)->hash);
}

// Made for good in a process of its own, without the checks.
TEST(PointsTest, MadeAgainItIsTheSame) {
  const TestingSweepFiles files;
  LoadedSweep sweep = files
                          .Load(R"(
    axes { field: 'profile.nic.bandwidth_gb_per_s' numbers: [12.5, 100] }
    axes { field: 'plan.pipeline_parallel' numbers: [2, 4] }
    derived { field: 'hardware.gpus' expression: 'pp' }
    stragglers { share: 0.5 factor_from: 1.1 factor_to: 1.4 }
    seeds: [5, 6])")
                          .value();
  int possible = 0;
  for (std::int64_t i = 0; i < sweep.points(); ++i) {
    const Point first = sweep.Make(i).value();
    if (!first.problem.ok()) continue;
    ++possible;
    const Point again = sweep.MakeAgain(i).value();
    EXPECT_EQ(again.number, i);
    EXPECT_EQ(again.columns, first.columns);
    EXPECT_EQ(SerializeDeterministically(again.experiment),
              SerializeDeterministically(first.experiment));
    EXPECT_EQ(SerializeDeterministically(again.profile), SerializeDeterministically(first.profile));
  }
  EXPECT_EQ(possible, 8);
}

TEST(PointsTest, ABaseThatChangesChangesTheSweep) {
  const TestingSweepFiles files;
  const std::string axes = "axes { field: 'plan.pipeline_parallel' numbers: 4 }";
  LoadedSweep first = files.Load(axes).value();
  const TestingSweepFiles others(std::string(kTestingBase) + "description: 'other words'");
  LoadedSweep same = others.Load(axes).value();
  EXPECT_EQ(first.Make(0)->hash, same.Make(0)->hash);
  EXPECT_EQ(SweepHash(first, {"x"}), SweepHash(same, {"x"}));
  EXPECT_NE(SweepHash(first, {"x"}), SweepHash(same, {"y"}));
}

}  // namespace
}  // namespace optimus::sweep
