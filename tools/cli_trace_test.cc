// `optimus trace`, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class CliTraceTest : public CliTest {
 protected:
  // A simulated step in $W/s.timeline.pb and $W/s.schedule.pb: 2 stages of 8 GPUs, folded.
  void Simulate() {
    Write("e.textproto", kGpt);
    const Result result = Run(
        "simulate $W/e.textproto --timeline=$W/s.timeline.pb --schedule=$W/s.schedule.pb --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    step_s_ = Json::parse(result.out)["iteration_time_s"];
  }

  Json Info(const std::string& arguments) {
    const Result result = Run(absl::StrCat("trace info --json ", arguments));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }

  void ExpectConverted(const std::string& arguments) {
    const Result result = Run(absl::StrCat("trace convert ", arguments));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
  }

  void ExpectRefused(const std::string& arguments, const std::vector<std::string>& words) {
    ExpectOneLineError(absl::StrCat("trace ", arguments), words);
  }

  std::string Content(const std::string& name) {
    return ReadFile(absl::StrCat(Work(), "/", name)).value_or("");
  }

  double step_s_ = 0;
};

TEST_F(CliTraceTest, HelpNamesEveryFlag) {
  const std::string convert = Run("trace convert --help").out;
  for (const char* flag : {"--to", "--step", "--schedule", "--groups", "--fold", "--all-ranks"}) {
    EXPECT_THAT(convert, HasSubstr(flag));
  }
  const std::string info = Run("trace info --help").out;
  for (const char* flag : {"TRACE", "--step", "--json"}) EXPECT_THAT(info, HasSubstr(flag));
}

TEST_F(CliTraceTest, InfoOfATimeline) {
  Simulate();
  const Json info = Info("$W/s.timeline.pb");
  EXPECT_EQ(info["format"], "optimus timeline");
  EXPECT_EQ(info["world"], 16);
  EXPECT_EQ(info["ranks"], Json({0, 8}));
  EXPECT_EQ(info["stood_for"], 16);
  EXPECT_EQ(info["missing"], 0);
  EXPECT_EQ(info["folded"], true);
  EXPECT_DOUBLE_EQ(info["step_s"], step_s_);
  EXPECT_EQ(info["messages"], "eager");
  bool tensor_parallel = false;
  for (const Json& group : info["groups"]) {
    if (group["name"] != "tp of stage 0, replica 0") continue;
    tensor_parallel = true;
    EXPECT_EQ(group["size"], 4);
    EXPECT_EQ(group["recorded"], 1);
    EXPECT_EQ(group["role"], "tp");
    EXPECT_GT(group["collectives"], 0);
    EXPECT_GT(group["bytes"], 0);
  }
  EXPECT_TRUE(tensor_parallel);
  const Result text = Run("trace info $W/s.timeline.pb");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("2 recorded of 16: 0, 8; they stand for 16 ranks"));
  EXPECT_EQ(text.err, "");
}

TEST_F(CliTraceTest, AllRanks) {
  Simulate();
  ExpectConverted("$W/s.timeline.pb $W/all.csv --all-ranks");
  ExpectConverted("$W/s.timeline.pb $W/folded.csv");
  const auto lines = [&](const char* name) {
    return std::vector<std::string>(absl::StrSplit(Content(name), '\n')).size() - 2;
  };
  EXPECT_EQ(lines("all.csv"), 8 * lines("folded.csv"));
}

TEST_F(CliTraceTest, Csv) {
  Simulate();
  ExpectConverted("$W/s.timeline.pb $W/t.csv");
  EXPECT_THAT(Content("t.csv"), StartsWith("rank,stands_for,lane,op,name,kind,communication,"));
  EXPECT_THAT(Content("t.csv"), HasSubstr("\n8,8,compute,"));
}

TEST_F(CliTraceTest, Perfetto) {
  Simulate();
  ExpectConverted("$W/s.timeline.pb $W/t.pftrace");
  EXPECT_THAT(Content("t.pftrace"), AllOf(HasSubstr("rank 8 (for 8 ranks)"), HasSubstr("compute")));
  ExpectConverted("$W/s.timeline.pb $W/without.ending --to=perfetto");
  EXPECT_EQ(Content("without.ending"), Content("t.pftrace"));
}

// What was written as Chrome JSON or Chakra says, read again, what the timeline said.
TEST_F(CliTraceTest, ThereAndBack) {
  Simulate();
  ExpectConverted("$W/s.timeline.pb $W/t.csv");
  ExpectConverted("$W/s.timeline.pb $W/c.json");
  ExpectConverted("$W/c.json $W/c.csv");
  EXPECT_EQ(Content("c.csv"), Content("t.csv"));
  ExpectConverted("$W/s.timeline.pb $W/z.json.gz");
  ExpectConverted("$W/z.json.gz $W/z.csv");
  EXPECT_EQ(Content("z.csv"), Content("t.csv"));
  ExpectConverted("$W/s.timeline.pb $W/k.et");
  ExpectConverted("$W/k $W/k.csv");
  EXPECT_EQ(Content("k.csv"), Content("t.csv"));
  ExpectConverted("$W/k.0.et $W/k.8.et $W/kk.csv --to=csv");
  EXPECT_EQ(Content("kk.csv"), Content("t.csv"));
  EXPECT_THAT(Files(), AllOf(Contains("k.0.et"), Contains("k.8.et"), Contains("k.groups.json")));
  for (const char* trace : {"$W/c.json", "$W/z.json.gz", "$W/k"}) {
    const Json info = Info(trace);
    EXPECT_EQ(info["ranks"], Json({0, 8})) << trace;
    EXPECT_DOUBLE_EQ(info["step_s"], step_s_) << trace;
    EXPECT_EQ(info["messages"], "eager") << trace;
    EXPECT_EQ(info["folded"], true) << trace;
  }
}

TEST_F(CliTraceTest, AFolderIsAllItsTraces) {
  Simulate();
  std::filesystem::create_directory(absl::StrCat(Work(), "/folder"));
  ExpectConverted("$W/s.timeline.pb $W/folder/k --to=chakra");
  EXPECT_EQ(Info("$W/folder")["ranks"], Json({0, 8}));
}

TEST_F(CliTraceTest, ScheduleOfATimeline) {
  Simulate();
  std::filesystem::rename(absl::StrCat(Work(), "/s.schedule.pb"),
                          absl::StrCat(Work(), "/other.schedule.pb"));
  ExpectRefused("info $W/s.timeline.pb", {"s.timeline.pb", "--schedule"});
  EXPECT_EQ(Info("$W/s.timeline.pb --schedule=$W/other.schedule.pb")["world"], 16);
  EXPECT_EQ(
      Run("simulate examples/01_two_stage_1f1b.textproto --schedule=$W/s.schedule.pb").exit_code,
      0);
  ExpectRefused("info $W/s.timeline.pb", {"s.timeline.pb", "rank 0"});
}

TEST_F(CliTraceTest, RefusesOutputs) {
  Simulate();
  ExpectRefused("convert $W/s.timeline.pb $W/t.xyz", {"t.xyz", ".pftrace", "--to="});
  ExpectRefused("convert $W/s.timeline.pb $W/t.csv --to=xls", {"--to=xls", "perfetto|chrome"});
  ExpectRefused("convert $W/s.timeline.pb $W/none/t.csv", {"none"});
  ExpectRefused("convert $W/s.timeline.pb $W/s.timeline.pb --to=csv", {"s.timeline.pb", "OUT"});
  ExpectRefused("convert $W/s.timeline.pb $W/s.schedule.pb --to=csv", {"s.schedule.pb", "OUT"});
  ExpectRefused("convert $W/s.timeline.pb", {"FILES"});
  ExpectConverted("$W/s.timeline.pb $W/k.et");
  ExpectRefused("convert $W/k.0.et $W/k.8.et $W/k.et", {"OUT would overwrite", "k."});
}

TEST_F(CliTraceTest, RefusesInputs) {
  Simulate();
  ExpectRefused("info", {"TRACE"});
  ExpectRefused("info $W/none", {"none", "no such file"});
  ExpectRefused("info $W/s.schedule.pb", {"s.schedule.pb", "--timeline="});
  Write("empty", "");
  ExpectRefused("info $W/empty", {"empty", "a trace is"});
  Write("text", "hello");
  ExpectRefused("info $W/text", {"text", "a trace is"});
  ExpectRefused("info $W/t.pftrace", {"t.pftrace"});
  Write("t.pftrace", "x");
  ExpectRefused("info $W/t.pftrace", {"t.pftrace", "not read"});
  Write("c.json", "{}");
  ExpectRefused("info $W/s.timeline.pb $W/c.json", {"c.json", "one kind"});
  ExpectRefused("info $W/s.timeline.pb $W/s.timeline.pb", {"all ranks in one file"});
  std::filesystem::create_directory(absl::StrCat(Work(), "/folder"));
  ExpectRefused("info $W/folder", {"folder", "no trace"});
}

TEST_F(CliTraceTest, RefusesFlagsOfOtherKinds) {
  Simulate();
  ExpectRefused("info $W/s.timeline.pb --step=1", {"--step", "JSON"});
  ExpectRefused("info $W/s.timeline.pb --groups=$W/g.json", {"--groups", "Chakra"});
  Write("c.json", "{}");
  ExpectRefused("info $W/c.json --schedule=$W/s.schedule.pb", {"--schedule", "timeline"});
  ExpectRefused("convert $W/c.json $W/c.csv --all-ranks", {"--all-ranks", "timeline"});
}

TEST_F(CliTraceTest, TooManyRanksForAllRanks) {
  const Result simulated =
      Run("simulate examples/22_strong_3072_dualpipe_v.textproto --timeline=$W/s.timeline.pb "
          "--schedule=$W/s.schedule.pb");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  ExpectRefused("convert $W/s.timeline.pb $W/all.csv --all-ranks",
                {"3072 ranks would have ", "at most 8000000", "without --all-ranks"});
}

TEST_F(CliTraceTest, OfNothingThereIsNothingToDraw) {
  Write("empty.json", "{\"schemaVersion\": 1, \"traceEvents\": []}");
  const Result result = Run("trace convert $W/empty.json $W/t.pftrace");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("empty.json"), HasSubstr("no operations")));
}

TEST_F(CliTraceTest, SimulateSaysHowToGetJson) {
  Write("e.textproto", kGpt);
  ExpectOneLineError("simulate $W/e.textproto --trace=$W/t.json",
                     {"not JSON", "optimus trace convert"});
}

}  // namespace
}  // namespace optimus::tools
