// `optimus validate`, as a user starts it without a launcher.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "schedule/ir/serialize.h"
#include "tools/cli_testing.h"
#include "tools/scaled_timeline.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr char kExample[] = "examples/cpu/mllm_optimus.textproto";

class CliValidateTest : public CliTest {
 protected:
  // a: as it is simulated; b: the same, 4 % longer.
  void WriteTimelines() {
    const Result result = Run(absl::StrCat("simulate ", kExample,
                                           " --fidelity=gpu --timeline=$W/a.timeline.pb "
                                           "--schedule=$W/s.schedule.pb"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const ir::Timeline timeline = ir::ReadTimeline(Work() + "/a.timeline.pb").value();
    ASSERT_TRUE(ir::WriteTimeline(Work() + "/b.timeline.pb", Scaled(timeline, 1.04)).ok());
  }
};

constexpr char kBoth[] = "validate timelines $W/a.timeline.pb $W/b.timeline.pb";

TEST_F(CliValidateTest, HelpNamesEveryFlag) {
  const std::string run = Run("validate run --help").out;
  for (const char* flag : {"EXPERIMENT", "--backend", "--rounds", "--iterations", "--warmup",
                           "--repetitions", "--tolerance", "--least-difference", "--pipeline",
                           "--time-scale", "--timeout", "--all-work", "--json", "--out"}) {
    EXPECT_THAT(run, HasSubstr(flag));
  }
  const std::string timelines = Run("validate timelines --help").out;
  for (const char* flag :
       {"SIMULATED", "MEASURED", "--schedule", "--tolerance", "--all-work", "--json"}) {
    EXPECT_THAT(timelines, HasSubstr(flag));
  }
  EXPECT_THAT(Run("validate --help").out, HasSubstr("timelines"));
}

TEST_F(CliValidateTest, TimelinesWithinAndOutsideTheTolerance) {
  WriteTimelines();
  const Result within = Run(kBoth);
  EXPECT_EQ(within.exit_code, 0) << within.err;
  EXPECT_THAT(within.out, HasSubstr("-3.8 %"));  // 1 / 1.04 - 1
  EXPECT_THAT(within.out, HasSubstr("the step is within it"));
  const Result outside = Run(absl::StrCat(kBoth, " --tolerance=0.03"));
  EXPECT_EQ(outside.exit_code, 2) << outside.err;
  EXPECT_THAT(outside.out, HasSubstr("the step is OUTSIDE it"));
  EXPECT_EQ(outside.err, "optimus: not met: the error of the step is -3.8 %, the tolerance 3 %\n");
}

TEST_F(CliValidateTest, TimelinesAsJsonWithTheirWork) {
  WriteTimelines();
  const Json json =
      Json::parse(Run(absl::StrCat(kBoth, " --json --schedule=$W/s.schedule.pb")).out);
  EXPECT_NEAR(json["step_error"], 1 / 1.04 - 1, 1e-6);
  EXPECT_EQ(json["within_tolerance"], true);
  EXPECT_EQ(json["operations_only_in_one"], 0);
  EXPECT_GT(json["operations_compared"], 100);
  ASSERT_FALSE(json["work"].empty());
  for (const Json& work : json["work"]) {
    if (work["measured_s"] < 1e-4) continue;  // rounded to a picosecond
    EXPECT_NEAR(work["error"], 1 / 1.04 - 1, 1e-3) << work;
  }
  ASSERT_FALSE(json["shares"].empty());
  // Without the schedule nothing says what the operations are.
  EXPECT_TRUE(Json::parse(Run(absl::StrCat(kBoth, " --json")).out)["work"].empty());
}

TEST_F(CliValidateTest, TimelinesInTheWrongOrderAreRefused) {
  WriteTimelines();
  ir::Timeline measured = ir::ReadTimeline(Work() + "/b.timeline.pb").value();
  measured.runner = "cpu";
  ASSERT_TRUE(ir::WriteTimeline(Work() + "/b.timeline.pb", measured).ok());
  const Result result = Run(kBoth);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("runners     simulated by simgrid, measured by cpu\n"));
  ExpectOneLineError("validate timelines $W/b.timeline.pb $W/a.timeline.pb",
                     {"b.timeline.pb: was measured (cpu)", "a.timeline.pb was simulated (simgrid)",
                      "give the simulated timeline first"});
  // Two runs of one schedule may be compared.
  EXPECT_EQ(Run("validate timelines $W/b.timeline.pb $W/b.timeline.pb").exit_code, 0);
}

TEST_F(CliValidateTest, AllWorkShowsEveryKind) {
  WriteTimelines();
  const std::string run = absl::StrCat(kBoth, " --schedule=$W/s.schedule.pb");
  const std::string some = Run(run).out, all = Run(run + " --all-work").out;
  EXPECT_THAT(some, HasSubstr("--all-work shows all"));
  EXPECT_THAT(some, ::testing::Not(HasSubstr("memory_bound final_norm_dgrad ")));
  EXPECT_THAT(all, HasSubstr("memory_bound final_norm_dgrad "));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("--all-work")));
}

TEST_F(CliValidateTest, ATruncatedTimelineIsRefused) {
  WriteTimelines();
  const std::string whole = ReadFile(Work() + "/b.timeline.pb").value();
  Write("b.timeline.pb", whole.substr(0, whole.size() - 7));
  ExpectOneLineError(kBoth, {"b.timeline.pb"});
  Write("b.timeline.pb", "");
  ExpectOneLineError(kBoth, {"b.timeline.pb"});
}

TEST_F(CliValidateTest, TimelinesOfTwoWorldsAreRefused) {
  WriteTimelines();
  ASSERT_EQ(Run("simulate examples/cpu/emulated_8.textproto --fidelity=gpu "
                "--timeline=$W/b.timeline.pb")
                .exit_code,
            0);
  ExpectOneLineError(kBoth, {});
}

TEST_F(CliValidateTest, FlagsThatMakeNoSense) {
  const std::string run = absl::StrCat("validate run ", kExample, " --backend=");
  ExpectOneLineError("validate", {"optimus validate --help"});
  ExpectOneLineError("validate run --backend=cpu", {"EXPERIMENT is required"});
  ExpectOneLineError(run + "tpu", {"--backend=tpu: is none of cpu, emulated, cuda"});
  ExpectOneLineError(run + "cpu --rounds=0", {"--rounds: is 0"});
  ExpectOneLineError(run + "cpu --tolerance=-1", {"--tolerance: is -1"});
  ExpectOneLineError(run + "cpu --time-scale=3", {"--time-scale is for --backend=emulated only"});
  ExpectOneLineError(run + "emulated --repetitions=3",
                     {"--repetitions is for --backend=cpu or cuda only"});
  ExpectOneLineError(run + "cpu --pipeline=zbh1", {"--pipeline=zbh1: is none of gpipe|1f1b"});
  ExpectOneLineError(run + "cpu --pipeline=dualpipe",
                     {kExample, "plan.schedule: DUALPIPE under strategy OPTIMUS"});
  ExpectOneLineError(run + "emulated --no-pin", {"--no-pin is for --backend=cpu only"});
  ExpectOneLineError(run + "cpu --round=3",
                     {"unknown flag --round", "optimus validate run --help"});
  ExpectOneLineError("validate timelines $W/a.timeline.pb", {"MEASURED is required"});
}

TEST_F(CliValidateTest, ExperimentsThatDoNotGoTogether) {
  const std::string run = absl::StrCat("validate run --backend=emulated ", kExample, " ");
  ExpectOneLineError(run + "examples/cpu/emulated_8.textproto",
                     {"needs 8 ranks", "needs 2", "validate experiments of one size together"});
  ExpectOneLineError(run + kExample, {"a second experiment named mllm_optimus"});
  ExpectOneLineError(run + "$W/s.schedule.pb", {"is named as a schedule; give experiments"});
  ExpectOneLineError(run + "$W/s.schedule.pb --pipeline=zb-h1",
                     {"is named as a schedule; give experiments"});
  ExpectOneLineError(run + "$W/none.textproto", {"none.textproto"});
}

// What the folder is for: differences that can be measured, kernels that are worth measuring.
TEST_F(CliValidateTest, ExamplesForCoresTellStrategiesApart) {
  const Json json = Json::parse(
      Run("simulate examples/cpu/mllm_megatron.textproto examples/cpu/mllm_balanced.textproto "
          "examples/cpu/mllm_optimus.textproto examples/cpu/two_encoders_megatron.textproto "
          "examples/cpu/two_encoders_optimus.textproto --json")
          .out);
  std::vector<double> steps;
  for (const Json& result : json["results"]) steps.push_back(result["iteration_time_s"]);
  ASSERT_EQ(steps.size(), 5);
  EXPECT_GT(steps[0], 1.05 * steps[1]);
  EXPECT_GT(steps[1], 1.05 * steps[2]);
  EXPECT_GT(steps[3], 1.05 * steps[4]);
  for (const double step : steps) {
    EXPECT_GT(step, 0.1);
    EXPECT_LT(step, 0.6);
  }
}

TEST_F(CliValidateTest, WithoutALauncherItSaysSo) {
  const Result result =
      Run(absl::StrCat("validate run --backend=emulated ", kExample), "", "PATH=/nowhere ");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("mpirun cannot be started"));
  EXPECT_THAT(result.err, HasSubstr("2 ranks are needed"));
}

}  // namespace
}  // namespace optimus::tools
