// `optimus validate run`: the mechanism. How close the simulator comes is measured on a quiet
// machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/serialize.h"
#include "tools/mpi_testing.h"

namespace optimus::tools {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class MpiValidateTest : public MpiTest {
 protected:
  // Alone: it starts its ranks itself.
  Result RunAlone(const std::string& arguments) {
    return Run(arguments, "", "export ASAN_OPTIONS=detect_leaks=0; ");
  }
};

TEST_F(MpiValidateTest, StartsItsRanksAndComparesTwoExperiments) {
  const Result result = RunAlone(
      "validate run examples/cpu/numerics_pp2_megatron.textproto "
      "examples/cpu/numerics_pp2_optimus.textproto --backend=cpu --rounds=2 --iterations=6 "
      "--warmup=1 --repetitions=6 --tolerance=20 --least-difference=50 --out=$W/out --json");
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["within_tolerance"], true);
  EXPECT_EQ(json["close_pairs"], 1);
  EXPECT_TRUE(json["ranking"].empty());
  EXPECT_GT(json["noise"]["samples"], 10);
  ASSERT_EQ(json["experiments"].size(), 2);
  for (const Json& experiment : json["experiments"]) {
    EXPECT_EQ(experiment["steps"], 6);
    EXPECT_EQ(experiment["median_s"], experiment["measured_s"]);
    EXPECT_DOUBLE_EQ(
        experiment["step_error"],
        experiment["simulated_s"].get<double>() / experiment["median_s"].get<double>() - 1);
    EXPECT_EQ(experiment["measured_runner"], "cpu");
    EXPECT_GT(experiment["simulated_s"], 0);
    EXPECT_EQ(experiment["operations_only_in_one"], 0);
    EXPECT_FALSE(experiment["work"].empty());
    EXPECT_FALSE(experiment["shares"].empty());
  }
  EXPECT_THAT(Files(), Contains("out/profile.textproto"));
  EXPECT_THAT(Files(), Contains("out/validation.json"));
  // What was written is what was compared.
  const Result again =
      Run("validate timelines $W/out/numerics_pp2_optimus.simulated.timeline.pb "
          "$W/out/numerics_pp2_optimus.measured.timeline.pb --tolerance=100 --json "
          "--schedule=$W/out/numerics_pp2_optimus.schedule.pb");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["step_error"], json["experiments"][1]["step_error"]);
  EXPECT_TRUE(hw::LoadProfile(Work() + "/out/profile.textproto").ok());
}

TEST_F(MpiValidateTest, OutsideTheToleranceExitsWithTwo) {
  const Result result = RunAlone(
      "validate run examples/cpu/numerics_dp2_megatron.textproto --backend=cpu "
      "--rounds=1 --iterations=2 --warmup=1 --repetitions=2 --tolerance=0");
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.out, HasSubstr("OUTSIDE"));
  EXPECT_THAT(result.out, HasSubstr("NOTHING FOLLOWS"));  // of a tolerance of nothing
  EXPECT_THAT(result.err, HasSubstr("optimus: not met: numerics_dp2_megatron: the error of the "));
  EXPECT_THAT(result.out, HasSubstr("noise       a GEMM of 512 x 512 x 512"));
}

TEST_F(MpiValidateTest, EmulatedRanksAreTheSimulatorsAfterScaling) {
  const Json json =
      JsonOfRanks(8,
                  "validate run examples/cpu/emulated_8.textproto --backend=emulated "
                  "--time-scale=30 --rounds=1 --iterations=1 --warmup=0 --tolerance=1");
  ASSERT_EQ(json["experiments"].size(), 1);
  EXPECT_FALSE(json.contains("noise"));
  EXPECT_GT(json["experiments"][0]["due_s"], 0);
  EXPECT_EQ(json["conclusive"], json["experiments"][0]["kept_time"]);
  // The step is never shorter than simulated, by more than what interference is left out.
  EXPECT_LT(json["experiments"][0]["step_error"], 0.02);
}

// Planned, run and simulated under the flag, by ranks that it starts itself.
TEST_F(MpiValidateTest, AnotherPipelineScheduleThanTheExperiments) {
  const std::string file = "examples/cpu/pp2_1f1b.textproto";
  ASSERT_EQ(Run(absl::StrCat("simulate ", file, " --pipeline=zb-h1 --schedule=$W/s.schedule.pb"))
                .exit_code,
            0);
  const Result result = RunAlone(absl::StrCat(
      "validate run ", file, " --backend=emulated --pipeline=zb-h1 --rounds=1 --iterations=1 ",
      "--warmup=0 --tolerance=1000 --out=$W/out --json"));
  ASSERT_LE(result.exit_code, 2) << result.err;
  const Json experiment = Json::parse(result.out)["experiments"][0];
  EXPECT_EQ(experiment["strategy"], "ZB_H1, EQUAL_LAYERS");
  EXPECT_EQ(ReadFile(absl::StrCat(Work(), "/out/pp2_1f1b.schedule.pb")).value(),
            ReadFile(Work() + "/s.schedule.pb").value());
}

TEST_F(MpiValidateTest, AnErrorIsSaidOnce) {
  ExpectOneError(3, "validate run examples/cpu/pp2_1f1b.textproto --backend=cpu",
                 {"this schedule needs 2 ranks", "3 were started"});
}

}  // namespace
}  // namespace optimus::tools
