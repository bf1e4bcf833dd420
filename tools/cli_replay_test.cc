// optimus replay and explain, as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class CliReplayTest : public CliTest {
 protected:
  // A simulated step and its timeline; returns the step in seconds.
  double Simulate(const std::string& experiment) {
    const Result result = Run(absl::StrCat("simulate ", experiment,
                                           " --json --timeline=$W/t.timeline.pb "
                                           "--schedule=$W/t.schedule.pb"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out)["iteration_time_s"].get<double>();
  }

  Json Replay(const std::string& arguments) {
    const Result result = Run(absl::StrCat("replay ", arguments, " --json"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }

  double ReplayedStep(const std::string& arguments) {
    return Replay(arguments)["replayed"]["step_s"].get<double>();
  }

  // The step through every format that can be read again.
  void ExpectRoundTrips(const std::string& experiment) {
    const double step = Simulate(experiment);
    EXPECT_NEAR(ReplayedStep("$W/t.timeline.pb"), step, 1e-9 * step);
    for (const char* out : {"chrome.json", "chakra.et"}) {
      const Result result = Run(absl::StrCat("trace convert $W/t.timeline.pb $W/", out));
      ASSERT_EQ(result.exit_code, 0) << result.err;
    }
    EXPECT_NEAR(ReplayedStep("$W/chrome.json"), step, 1e-9 * step);
    EXPECT_NEAR(ReplayedStep("$W/chakra"), step, 1e-9 * step);
  }

  void ExpectError(const std::string& arguments, const std::vector<std::string>& parts) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
  }
};

TEST_F(CliReplayTest, RoundTripsOfStrong3072) {
  ExpectRoundTrips("examples/paper/strong_3072_balanced.textproto");
}

TEST_F(CliReplayTest, RoundTripsOfTwoEncoders) {
  ExpectRoundTrips("examples/11_two_encoders.textproto");
}

TEST_F(CliReplayTest, TheAccountAddsUpAndFitsTheSimulator) {
  const double step = Simulate(Write("e.textproto", kGpt));
  const Json replay = Replay("$W/t.timeline.pb");
  for (const char* column : {"recorded", "replayed"}) {
    const Json& c = replay[column];
    double sum = c["compute_s"].get<double>() + c["waiting_s"].get<double>() +
                 c["copy_s"].get<double>() + c["idle_s"].get<double>();
    for (const auto& exposed : c["exposed_s"]) sum += exposed.get<double>();
    EXPECT_NEAR(sum, step, 1e-9);
    EXPECT_NEAR(c["step_s"].get<double>(), step, 1e-12);
  }
  EXPECT_EQ(replay["folded"], true);
  EXPECT_TRUE(replay["unpaired"].empty());
  EXPECT_TRUE(replay["clocks"].empty());
}

// A link twice as fast, by the replay and by simulating anew with such a link. No interference and
// no shared link here, so that both mean the same.
TEST_F(CliReplayTest, AFasterLinkAsTheSimulatorSays) {
  const std::string experiment = Write("e.textproto", kGpt);
  Simulate(experiment + " --no-interference");
  const Json what_if = Replay("$W/t.timeline.pb --profile=h100-80gb --link=nic:100GB/s");
  std::string profile = *ReadFile("hw_profiles/zoo/h100-80gb.textproto");
  const std::size_t nic = profile.find("\nnic");
  const std::size_t at = profile.find("value: 50", nic);
  ASSERT_NE(at, std::string::npos);
  Write("fast.textproto", profile.replace(at, 9, "value: 100"));
  const double fast = Simulate(experiment + " --no-interference --profile=$W/fast.textproto");
  EXPECT_NEAR(what_if["what_if"]["step_s"].get<double>(), fast, 1e-3 * fast);
  EXPECT_LT(fast, what_if["replayed"]["step_s"].get<double>());
}

TEST_F(CliReplayTest, WhatIfsChangeTheStepTheRightWay) {
  const double step = Simulate(Write("e.textproto", kGpt));
  const Json faster = Replay("$W/t.timeline.pb --scale-compute=0.5");
  EXPECT_LT(faster["what_if"]["step_s"].get<double>(), 0.75 * step);
  EXPECT_GT(faster["what_if"]["step_s"].get<double>(), 0.5 * step);
  const Json slow = Replay("$W/t.timeline.pb --straggler=0:1.5");
  EXPECT_GT(slow["what_if"]["step_s"].get<double>(), 1.2 * step);
  const Json dropped = Replay("$W/t.timeline.pb --drop-exposed=dp");
  EXPECT_LT(dropped["what_if"]["step_s"].get<double>(), step);
  EXPECT_EQ(dropped["changes"][0], "communication 'dp' takes no time");
}

TEST_F(CliReplayTest, TheWhatIfCanBeWrittenAndReplayed) {
  Simulate(Write("e.textproto", kGpt));
  const Json what_if = Replay("$W/t.timeline.pb --scale-compute=2 --trace=$W/slow.json");
  EXPECT_NEAR(ReplayedStep("$W/slow.json"), what_if["what_if"]["step_s"].get<double>(), 1e-9);
  EXPECT_EQ(Run("replay $W/t.timeline.pb --trace=$W/replay.pftrace").exit_code, 0);
}

TEST_F(CliReplayTest, ExplainsASimulatedStep) {
  const double step = Simulate(Write("e.textproto", kGpt));
  const Result result = Run("explain $W/t.timeline.pb --json --top=5");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json explained = Json::parse(result.out);
  EXPECT_NEAR(explained["step_s"].get<double>(), step, 1e-12);
  double at = 0;
  for (const Json& stretch : explained["critical_path"]) {
    EXPECT_NEAR(stretch["from_s"].get<double>(), at, 1e-12);
    at = stretch["to_s"].get<double>();
  }
  EXPECT_NEAR(at, step, 1e-12);
  ASSERT_EQ(explained["gaps"].size(), 5);
  for (const Json& gap : explained["gaps"]) {
    double causes = 0;
    for (const Json& cause : gap["causes"]) causes += cause["time_s"].get<double>();
    EXPECT_NEAR(causes, gap["to_s"].get<double>() - gap["from_s"].get<double>(), 1e-12);
  }
  EXPECT_EQ(explained["sensitivity"][0]["class"], "compute");
  const Result text = Run("explain $W/t.timeline.pb");
  EXPECT_THAT(text.out, AllOf(HasSubstr("critical path"), HasSubstr("The longest gaps"),
                              HasSubstr("if it took no time")));
}

TEST_F(CliReplayTest, ATraceThatIsLargerThanTheClusterIsRefusedWithBothNumbers) {
  Simulate(Write("e.textproto", kGpt));
  const std::string profile = *ReadFile("hw_profiles/zoo/h100-80gb.textproto");
  Write("p.textproto", profile +
                           "\ncluster_gpus { value: 8 origin: ASSUMED source: \"test\" date: "
                           "\"2026\" }\n");
  ExpectError("replay $W/t.timeline.pb --profile=$W/p.textproto --link=nic:100GB/s",
              {"16 ranks", "cluster of 8 GPUs"});
  ExpectError("simulate $W/e.textproto --profile=$W/p.textproto", {"16 GPUs", "cluster of 8"});
}

TEST_F(CliReplayTest, BadFlagsAreNamed) {
  Simulate(Write("e.textproto", kGpt));
  const std::string replay = "replay $W/t.timeline.pb ";
  ExpectError(replay + "--link=nic:100GB/s", {"--link", "needs --profile"});
  ExpectError(replay + "--profile=h100-80gb --link=nic:100", {"--link=nic:100"});
  ExpectError(replay + "--profile=h100-80gb --link=pcie:1GB/s", {"nic:50GB/s"});
  ExpectError(replay + "--profile=h100-80gb --link=nic:100GB/s --link=nic:200GB/s",
              {"--link=nic:200GB/s", "given twice"});
  ExpectError(replay + "--straggler=99:1.5", {"--straggler", "rank 99 was not recorded"});
  ExpectError(replay + "--straggler=-1:1.5", {"--straggler=-1:1.5", "RANK:FACTOR"});
  ExpectError(replay + "--straggler=0:-1", {"--straggler=0:-1", "RANK:FACTOR"});
  ExpectError(replay + "--scale-compute=0", {"--scale-compute=0"});
  ExpectError(replay + "--drop-exposed=ep", {"--drop-exposed", "'ep'", "it has: all, dp"});
  ExpectError(replay + "--rank=3", {"--rank=3", "the trace has rank 0"});
  ExpectError(replay + "--trace=$W/t.timeline.pb", {"--trace=", "no name of a trace"});
  ASSERT_EQ(Run(replay + "--trace=$W/t.json").exit_code, 0);
  ExpectError("replay $W/t.json --trace=$W/t.json", {"--trace", "t.json", "overwrite"});
  ExpectError(replay + "--trace=$W/t.groups.json", {"--trace=", ".groups.json"});
  ExpectError("trace convert $W/t.json $W/x.groups.json", {"x.groups.json", "Chakra"});
  ExpectError("trace convert $W/t.json $W/.et", {"PREFIX.et"});
  ExpectError("trace convert $W/t.json -", {"standard output"});
  ExpectError("replay $W/t.json --step=99999999999999999999", {"--step"});
  ExpectError("explain $W/t.timeline.pb --rank=3", {"--rank=3"});
  ExpectError("explain $W/none.json", {"none.json"});
}

}  // namespace
}  // namespace optimus::tools
