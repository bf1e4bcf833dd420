#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/sweep/spec/sweep.h"
#include "tools/sweep/spec/testing_files.h"

namespace optimus::sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Problem(const std::string& sweep) {
  const TestingSweepFiles files;
  const absl::Status status = files.Load(sweep).status();
  EXPECT_FALSE(status.ok()) << sweep;
  EXPECT_THAT(std::string(status.message()), HasSubstr("test.textproto"));
  return std::string(status.message());
}

std::vector<std::string> Names(const LoadedSweep& sweep) {
  std::vector<std::string> names;
  for (const Column& column : sweep.columns()) names.push_back(column.name);
  return names;
}

TEST(LoadSweepTest, ColumnsInTheOrderOfTheLoops) {
  const TestingSweepFiles files;
  const LoadedSweep sweep = files
                                .Load(R"(
    strategies { name: "a" }
    strategies { name: "b" settings { field: "plan.schedule" value: "GPIPE" } }
    axes { field: "plan.pipeline_parallel" numbers: [2, 4] }
    zips {
      axes { field: "batch.global_batch" numbers: [16, 32] }
      axes { field: "batch.micro_batch" name: "mb" numbers: [1, 2] }
    }
    stragglers { share: 0.5 factor_from: 1 factor_to: 2 } seeds: [5, 6]
    derived { field: "hardware.gpus" expression: "dp * pp * tp" }
    derived { name: "micro_batches" expression: 'global_batch / (dp * mb)' unit: "x"
}
    conditions: "strategy != 'b' OR micro_batches >= 16")")
                                .value();
  EXPECT_EQ(sweep.spec().name(), "test");
  EXPECT_THAT(Names(sweep),
              ElementsAre("strategy", "pp", "global_batch", "mb", "seed", "gpus", "micro_batches"));
  EXPECT_EQ(sweep.combinations(), 16);
  EXPECT_EQ(sweep.points(), 16);
  EXPECT_EQ(sweep.columns()[6].type, "INTEGER");
  EXPECT_EQ(sweep.columns()[6].kind, ColumnKind::kDerived);
  EXPECT_EQ(sweep.columns()[5].unit, "GPUs");
}

TEST(LoadSweepTest, RowsOfAZipMayShareValues) {
  const TestingSweepFiles files;
  const LoadedSweep sweep = files
                                .Load(R"(
    zips {
      axes { field: "plan.pipeline_parallel" numbers: [4, 2, 4] }
      axes { field: "batch.micro_batch" numbers: [1, 1, 2] }
    })")
                                .value();
  EXPECT_EQ(sweep.points(), 3);
}

TEST(LoadSweepTest, ConditionsAreCounted) {
  const TestingSweepFiles files;
  const LoadedSweep sweep = files
                                .Load(R"(
    axes { field: "plan.pipeline_parallel" range { from: 1 to: 8 step: 1 } }
    conditions: "pp % 2 == 0" conditions: "pp > 3")")
                                .value();
  EXPECT_EQ(sweep.points(), 3);
  EXPECT_THAT(sweep.excluded(), ElementsAre(4, 1));
  EXPECT_EQ(sweep.excluded_in_all(), 5);
}

TEST(LoadSweepTest, MistakesNameFileAndField) {
  EXPECT_THAT(Problem("axes { field: 'plan.pp' numbers: 1 }"),
              AllOf(HasSubstr("axes: plan.pp"), HasSubstr("pipeline_parallel")));
  EXPECT_THAT(Problem("settings { field: 'plan.layout' value: 'x' }"), HasSubstr("settings: plan"));
  EXPECT_THAT(Problem("axes { field: 'encoders[0].model' values: 'vit-3b' }"),
              HasSubstr("has 0 entries"));
  EXPECT_THAT(Problem("strategies { settings { field: 'llm' value: 'x' } }"),
              HasSubstr("name of its own"));
  EXPECT_THAT(Problem("strategies { name: 'a' } strategies { name: 'a' }"),
              HasSubstr("name of its own"));
  EXPECT_THAT(Problem("axes { field: 'hardware.gpus' numbers: 4 } "
                      "axes { field: 'hardware.gpus' name: 'g' numbers: 8 }"),
              HasSubstr("set by two axes"));
  EXPECT_THAT(Problem("axes { field: 'hardware.gpus' name: 'a' numbers: 4 } "
                      "axes { field: 'batch.micro_batch' name: 'a' numbers: 8 }"),
              HasSubstr("name of two columns"));
  EXPECT_THAT(Problem("axes { field: 'hardware.gpus' name: 'A b' numbers: 4 }"),
              HasSubstr("no name of a column"));
  EXPECT_THAT(Problem("axes { field: 'hardware.gpus' name: 'mfu_percent' numbers: 4 }"),
              HasSubstr("every sweep has"));
  EXPECT_THAT(Problem("axes { field: 'plan.micro_batch_group' name: 'pp' numbers: 8 }"),
              AllOf(HasSubstr("plan.pipeline_parallel"), HasSubstr("another name")));
  EXPECT_THAT(Problem("derived { name: 'gpus' expression: '4' }"), HasSubstr("hardware.gpus"));
  EXPECT_THAT(Problem("settings { field: 'hardware.gpus' value: '4' } "
                      "settings { field: 'hardware.gpus' value: '8' }"),
              HasSubstr("set twice"));
  EXPECT_THAT(Problem("conditions: 'memory_gib <= 60'"), HasSubstr("sweep show --where"));
  EXPECT_THAT(Problem("zips { axes { field: 'plan.pipeline_parallel' numbers: [4, 2, 4] } "
                      "axes { field: 'batch.micro_batch' numbers: [1, 1, 1] } }"),
              HasSubstr("the row 4, 1 is there twice"));
  EXPECT_THAT(Problem("zips { axes { field: 'hardware.gpus' numbers: [4, 8] } "
                      "axes { field: 'batch.micro_batch' numbers: 1 } }"),
              HasSubstr("has 1 values, the first axis of the zip has 2"));
  EXPECT_THAT(Problem("conditions: 'ppp == 1'"), HasSubstr("no such column: ppp"));
  EXPECT_THAT(Problem("conditions: 'pp == 1'"), HasSubstr("none of 1 combinations remains"));
  EXPECT_THAT(Problem("conditions: '\"x\" == 1'"), HasSubstr("no such column"));
  EXPECT_THAT(Problem("conditions: \"'x'\""), HasSubstr("gives the text"));
  EXPECT_THAT(Problem("derived { name: 'x' expression: '1 +' }"), HasSubstr("syntax error"));
  EXPECT_THAT(Problem("derived { expression: '1' }"), HasSubstr("no name of a column"));
  EXPECT_THAT(Problem("seeds: 1"), HasSubstr("give stragglers"));
  EXPECT_THAT(Problem("stragglers { share: 0.5 factor_from: 1 factor_to: 2 }"),
              HasSubstr("give seeds"));
  EXPECT_THAT(Problem("stragglers { share: 2 factor_from: 1 factor_to: 2 } seeds: 1"),
              HasSubstr("from 0 to 1"));
  EXPECT_THAT(Problem("stragglers { factor_from: 0.5 factor_to: 2 } seeds: 1"),
              HasSubstr("1 or more"));
  EXPECT_THAT(Problem("objective: 'speed'"), HasSubstr("iteration_time_s"));
  EXPECT_THAT(Problem("keep: KEEP_UNSPECIFIED"), HasSubstr("keeps nothing"));
  EXPECT_THAT(Problem("axes { field: 'hardware.gpus' range { from: 1 to: 2000 step: 1 } } "
                      "axes { field: 'batch.global_batch' range { from: 1 to: 2000 step: 1 } }"),
              HasSubstr("combinations, more than"));
}

TEST(LoadSweepTest, BadFiles) {
  const TestingSweepFiles files;
  EXPECT_TRUE(absl::IsNotFound(LoadedSweep::Load(files.Path("none.textproto")).status()));
  EXPECT_THAT(
      std::string(LoadedSweep::Load(files.Write("s.textproto", "name: 'x'")).status().message()),
      HasSubstr("base: is missing"));
  EXPECT_THAT(
      std::string(
          LoadedSweep::Load(files.Write("s.textproto", "base: 'b.textproto'")).status().message()),
      HasSubstr("b.textproto"));
}

}  // namespace
}  // namespace optimus::sweep
