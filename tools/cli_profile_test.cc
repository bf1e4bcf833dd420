// --profile and --timeline, as a user gives them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "schedule/ir/serialize.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using Json = nlohmann::ordered_json;
class CliProfileTest : public CliTest {};

// The zoo's H100 with half the GEMM rate.
void WriteSlowProfile(const std::string& path, const std::string& more) {
  std::string text = *ReadFile(DataDir() + "/hw_profiles/zoo/h100-80gb.textproto");
  text = absl::StrReplaceAll(
      text, {{"value: 0.65", "value: 0.325"}, {"name: \"h100-80gb\"", "name: \"slow\""}});
  std::ofstream(path) << text << more;
}

TEST_F(CliProfileTest, AProfileTakesThePlaceOfTheExperimentsOwn) {
  Write("e.textproto", kGpt);
  WriteSlowProfile(Work() + "/slow.textproto", "");
  const Json own = Json::parse(Run("simulate $W/e.textproto --json").out);
  const Result result = Run("simulate $W/e.textproto --profile=$W/slow.textproto --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json slow = Json::parse(result.out);
  EXPECT_EQ(slow["profile"], "slow");
  EXPECT_NE(slow["profile_hash"], own["profile_hash"]);
  EXPECT_GT(slow["iteration_time_s"].get<double>(), 1.3 * own["iteration_time_s"].get<double>());
  // As if the experiment named it.
  Write("named.textproto", absl::StrReplaceAll(kGpt, {{"h100-80gb", "slow.textproto"}}));
  const Json named = Json::parse(Run("simulate $W/named.textproto --json").out);
  EXPECT_EQ(named["iteration_time_s"], slow["iteration_time_s"]);
  // And where the experiment names none, or one that is not there.
  WriteChanged("h100-80gb", "h900");
  EXPECT_EQ(Run("simulate $W/e.textproto --profile=a100-80gb").exit_code, 0);
  ExpectBadInput("$W/e.textproto --profile=$W/slow.textproto --trace=$W/slow.textproto",
                 {"--trace", "overwrite"});
}

TEST_F(CliProfileTest, AProfileMustHaveTheNodesThatAreNeeded) {
  Write("e.textproto", kGpt);
  WriteSlowProfile(Work() + "/p.textproto", "measured_on: \"one GPU\"\n");
  ASSERT_EQ(Run("simulate $W/e.textproto --schedule=$W/s.schedule.pb").exit_code, 0);
  EXPECT_EQ(Run("simulate $W/e.textproto --profile=$W/p.textproto").exit_code, 0);
  std::string text = *ReadFile(Work() + "/p.textproto");
  const std::size_t at = text.find("value: 8", text.find("gpus_per_node"));
  ASSERT_NE(at, std::string::npos);
  Write("p.textproto", text.replace(at, 8, "value: 2"));
  ExpectBadInput("$W/e.textproto --profile=$W/p.textproto",
                 {"e.textproto", "2 GPUs a node", "tensor-parallel groups of 4", "hint"});
  ExpectBadInput("$W/s.schedule.pb --profile=$W/p.textproto",
                 {"s.schedule.pb", "gpus_per_node is 8", "nodes of 2", "hint"});
}

TEST_F(CliProfileTest, TheTimelineHasTheStepAndTheSpans) {
  Write("e.textproto", kGpt);
  const Result result =
      Run("simulate $W/e.textproto --json --timeline=$W/t.timeline.pb --schedule=$W/s.schedule.pb");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(Run("simulate $W/e.textproto --timeline=$W/t.timeline.textproto").exit_code, 0);
  const auto timeline = ir::ReadTimeline(Work() + "/t.timeline.pb");
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(*timeline, *ir::ReadTimeline(Work() + "/t.timeline.textproto"));
  EXPECT_NEAR(ToSeconds(timeline->step), Json::parse(result.out)["iteration_time_s"].get<double>(),
              1e-6);
  const auto schedule = ir::ReadSchedule(Work() + "/s.schedule.pb");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  // The first tensor-parallel rank of each stage of one replica.
  std::size_t operations = 0;
  for (const ir::Program& program : schedule->programs) operations += program.operations.size();
  EXPECT_EQ(timeline->spans.size(), operations);
}

TEST_F(CliProfileTest, PlanTakesAProfileToo) {
  WriteSlowProfile(Work() + "/slow.textproto", "");
  const std::string plan = "plan --json examples/10_frozen_encoder.textproto";
  const Json own = Json::parse(Run(plan).out);
  const Result result = Run(plan + " --profile=$W/slow.textproto");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json slow = Json::parse(result.out);
  EXPECT_EQ(slow["profile"], "slow");
  EXPECT_GT(slow["simulated_iteration_time_s"].get<double>(),
            1.2 * own["simulated_iteration_time_s"].get<double>());
  ExpectOneLineError(plan + " --profile=h900", {"--profile: unknown", "h900"});
}

}  // namespace
}  // namespace optimus::tools
