// `optimus run` and `optimus profile`, as a user starts them without a launcher.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "hw_profiles/profile.h"
#include "schedule/ir/serialize.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Json = nlohmann::ordered_json;

constexpr char kTwoRanks[] = "examples/cpu/pp2_1f1b.textproto";

// A tiny LLM on one rank.
constexpr char kOneRank[] = R"(
name: "one"
llm: "LLM"
hardware { profile: "PROFILE" gpus: 1 }
batch { global_batch: 1 micro_batch: 1 sequence_length: 32 }
plan {
  data_parallel: 1
  pipeline_parallel: 1
  tensor_parallel: 1
  schedule: ONE_F_ONE_B
  layout: EQUAL_LAYERS
}
)";

class CliRunTest : public CliTest {
 protected:
  std::string WriteOneRank() {
    return Write("one.textproto",
                 absl::StrReplaceAll(
                     kOneRank, {{"LLM", absl::StrCat(std::filesystem::current_path().string(),
                                                     "/examples/models/gpt-tiny.textproto")},
                                {"PROFILE", absl::StrCat(std::filesystem::current_path().string(),
                                                         "/examples/cpu/core.textproto")}}));
  }
  Json RunJson(const std::string& arguments) {
    const Result result = Run(absl::StrCat(arguments, " --json"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json json = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << result.out;
    return json;
  }
};

TEST_F(CliRunTest, HelpNamesEveryFlag) {
  const std::string help = Run("run --help").out;
  for (const char* flag :
       {"FILE", "--backend", "--iterations", "--warmup", "--profile", "--pipeline", "--scheduler",
        "--timeout", "--numerics", "--tolerance", "--bf16", "--time-scale", "--cuda-graph",
        "--no-pin", "--json", "--timeline", "--schedule", "--trace"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
  const std::string profile = Run("profile --help").out;
  for (const char* flag :
       {"--backend", "--for", "--repetitions", "--base", "--out", "--timeout", "--json"}) {
    EXPECT_THAT(profile, HasSubstr(flag));
  }
  // It measures hardware.
  EXPECT_THAT(help, HasSubstr("emulated"));
  EXPECT_THAT(profile, Not(HasSubstr("emulated")));
}

TEST_F(CliRunTest, AnotherWorldIsRefusedWithTheRightCommand) {
  ExpectOneLineError(
      absl::StrCat("run ", kTwoRanks, " --backend=emulated --iterations=3"),
      {kTwoRanks, "this schedule needs 2 ranks (DP 1 x PP 2 x TP 1), 1 was started", "mpirun ",
       absl::StrCat("-np 2 optimus run ", kTwoRanks, " --backend=emulated --iterations=3")});
}

TEST_F(CliRunTest, FlagsThatMakeNoSense) {
  const std::string run = absl::StrCat("run ", kTwoRanks, " --backend=");
  ExpectOneLineError(absl::StrCat("run ", kTwoRanks), {"--backend is required"});
  ExpectOneLineError(run + "tpu", {"--backend=tpu: is none of cpu, cuda, emulated"});
  ExpectOneLineError(run + "cpu --timeout=5", {"--timeout=5"});
  ExpectOneLineError(run + "cpu --timeout=1ms", {"--timeout=1ms: must be from 0.1s to 86400s"});
  ExpectOneLineError(run + "cpu --iterations=0", {"--iterations: is 0; must be from 1"});
  ExpectOneLineError(run + "cpu --warmup=-1", {"--warmup: is -1; must be from 0"});
  ExpectOneLineError(run + "cpu --time-scale=2", {"--time-scale is for --backend=emulated only"});
  ExpectOneLineError(run + "cpu --cuda-graph", {"--cuda-graph is for --backend=cuda only"});
  ExpectOneLineError(run + "emulated --numerics", {"--numerics is for --backend=cpu only"});
  ExpectOneLineError(run + "emulated --bf16", {"--bf16 is for --backend=cpu only"});
  ExpectOneLineError(run + "cpu --numerics --bf16", {"--numerics", "f32"});
  ExpectOneLineError(run + "emulated --no-pin", {"--no-pin is for --backend=cpu only"});
  ExpectOneLineError(run + "cpu --tolerance=1e-4", {"--tolerance is of --numerics; give both"});
  ExpectOneLineError(run + "cpu --pipeline=zbh1", {"--pipeline=zbh1: is none of gpipe|1f1b"});
  ExpectOneLineError(run + "cpu --pipeline ''", {"--pipeline", "is empty"});
  ExpectOneLineError(run + "cpu --trace=$W/t.json", {"--trace=", "not JSON", ".pftrace"});
  ExpectOneLineError(run + "cpu --timeline=$W/t.pb", {"the name of a timeline ends in"});
  ExpectOneLineError(run + "cpu --schedule=$W/s.pb", {"whose name ends in .schedule.pb"});
  ExpectOneLineError(run + "cpu --iteration=3", {"unknown flag --iteration", "optimus run --help"});
}

TEST_F(CliRunTest, HelpSaysHowItIsCalledAndHowItExits) {
  const std::string help = Run("run --help").out;
  EXPECT_THAT(help, HasSubstr("\nUsage: optimus run [OPTIONS] FILE\n"));
  EXPECT_THAT(help, HasSubstr("Exits with 2 where --numerics finds more than --tolerance"));
  EXPECT_THAT(help, HasSubstr("\nExit codes: 0 success, 1 bad input, 2 "));
  EXPECT_THAT(help, HasSubstr("a schedule file needs it for --backend=emulated"));
  EXPECT_THAT(Run("validate run --help").out, HasSubstr("\nUsage: optimus validate run [OPTIONS]"));
  EXPECT_THAT(Run("simulate --help").out, HasSubstr("; a schedule file needs it\n"));
}

// As `simulate` refuses it.
TEST_F(CliRunTest, ASchedulerForWhatHasNoEncodersInBubbles) {
  const std::string file = WriteOneRank();
  const std::string refused = "--scheduler=paper: ";
  ExpectOneLineError(absl::StrCat("run ", file, " --backend=cpu --scheduler=paper"),
                     {refused, "has no plan.strategy: OPTIMUS"});
  ASSERT_EQ(Run(absl::StrCat("simulate ", file, " --schedule=$W/s.schedule.pb")).exit_code, 0);
  ExpectOneLineError("run $W/s.schedule.pb --backend=cpu --scheduler=paper",
                     {refused, "has no plan.strategy: OPTIMUS"});
}

// As `simulate` refuses it: the schedule that is run is the experiment's under the flag.
TEST_F(CliRunTest, AnotherPipelineScheduleThanTheExperiments) {
  const std::string file = WriteOneRank();
  const Json json = RunJson(absl::StrCat("run ", file, " --backend=cpu --iterations=1 --warmup=0 ",
                                         "--pipeline=zb-h1 --schedule=$W/run.schedule.textproto"));
  EXPECT_GT(json["iteration_time_s"], 0);
  ASSERT_EQ(Run(absl::StrCat("simulate ", file,
                             " --pipeline=zb-h1 --schedule=$W/simulate.schedule.textproto"))
                .exit_code,
            0);
  EXPECT_EQ(ReadFile(Work() + "/run.schedule.textproto").value(),
            ReadFile(Work() + "/simulate.schedule.textproto").value());
  ExpectOneLineError("run $W/run.schedule.textproto --backend=cpu --pipeline=zb-h1",
                     {"run.schedule.textproto: --pipeline with a schedule file, which has its "
                      "order already"});
}

TEST_F(CliRunTest, FilesThatAreNotThere) {
  ExpectOneLineError("run $W/none.textproto --backend=emulated", {"none.textproto"});
  ExpectOneLineError(absl::StrCat("run ", WriteOneRank(), " --backend=emulated --profile=none"),
                     {"--profile: ", "none"});
  ExpectOneLineError(
      absl::StrCat("run ", WriteOneRank(), " --backend=emulated --trace=$W/none/t.pftrace"),
      {"--trace=", "no folder"});
}

TEST_F(CliRunTest, ASchedulesEmulationNeedsAProfile) {
  const std::string file = WriteOneRank();
  ASSERT_EQ(Run(absl::StrCat("simulate ", file, " --schedule=$W/s.schedule.pb")).exit_code, 0);
  ExpectOneLineError("run $W/s.schedule.pb --backend=emulated",
                     {"names none; give --profile=NAME"});
  ExpectOneLineError("run $W/s.schedule.pb --backend=cpu --numerics",
                     {"is named as a schedule, which names no models to train"});
}

TEST_F(CliRunTest, ATruncatedScheduleIsRefused) {
  ASSERT_EQ(
      Run(absl::StrCat("simulate ", WriteOneRank(), " --schedule=$W/s.schedule.pb")).exit_code, 0);
  const std::string whole = ReadFile(Work() + "/s.schedule.pb").value();
  Write("s.schedule.pb", whole.substr(0, whole.size() / 2));
  ExpectOneLineError("run $W/s.schedule.pb --backend=cpu", {"s.schedule.pb"});
}

// Sizes of a schedule edited by hand: the same line of every backend, and of simulate.
TEST_F(CliRunTest, SizesOutOfRangeAreRefusedWithFileAndField) {
  const std::string made =
      absl::StrCat("simulate ", WriteOneRank(), " --schedule=$W/s.schedule.textproto");
  ASSERT_EQ(Run(made).exit_code, 0);
  const std::string whole = ReadFile(Work() + "/s.schedule.textproto").value();
  const std::string profile =
      absl::StrCat(std::filesystem::current_path().string(), "/examples/cpu/core.textproto");
  struct Edit {
    const char *field, *value, *says;
  };
  for (const Edit& edit : {Edit{"    m: ", "9223372036854775807", ".gemm.m: 9223372036854775807"},
                           Edit{"    k: ", "4000000000000000", ".gemm: m * k = "},
                           Edit{"    heads: ", "4000000000000000000", ".attention.heads: "},
                           Edit{"    sequences: ", "9223372036854775807", ".sequences: "},
                           Edit{"    heads: ", "1", ".attention.kv_heads: "},
                           Edit{"  hbm_bytes: ", "-1", ".hbm_bytes: -1 is too small"},
                           Edit{"  flops: ", "1e300", ".flops: 1e+300 is no amount of work"}}) {
    const std::size_t at = whole.find(edit.field);
    ASSERT_NE(at, std::string::npos) << edit.field;
    const std::size_t end = whole.find('\n', at);
    Write("e.schedule.textproto",
          absl::StrCat(whole.substr(0, at), edit.field, edit.value, whole.substr(end)));
    for (const char* command : {"run $W/e.schedule.textproto --backend=cpu --profile=",
                                "run $W/e.schedule.textproto --backend=emulated --profile=",
                                "simulate $W/e.schedule.textproto --profile="}) {
      ExpectOneLineError(command + profile, {"e.schedule.textproto: ", "kernels[", edit.says});
    }
  }
}

TEST_F(CliRunTest, WhatDoesNotFitIntoMemoryIsRefusedWithFileAndKernel) {
  const std::string made =
      absl::StrCat("simulate ", WriteOneRank(), " --schedule=$W/s.schedule.textproto");
  ASSERT_EQ(Run(made).exit_code, 0);
  const std::string whole = ReadFile(Work() + "/s.schedule.textproto").value();
  const std::pair<const char*, const char*> edits[] = {{"    m: ", "9000000000000"},
                                                       {"    sequence_length: ", "90000000"}};
  for (const auto& [field, value] : edits) {
    const std::size_t at = whole.find(field);
    ASSERT_NE(at, std::string::npos);
    Write("e.schedule.textproto",
          absl::StrCat(whole.substr(0, at), field, value, whole.substr(whole.find('\n', at))));
    ExpectOneLineError("run $W/e.schedule.textproto --backend=cpu",
                       {"e.schedule.textproto: ", " kernel '", "GiB for its operands, but kernels",
                        "half of this rank's"});
  }
}

TEST_F(CliRunTest, OneRankNeedsNoLauncher) {
  const std::string file = WriteOneRank();
  const Json json = RunJson(absl::StrCat("run ", file,
                                         " --backend=emulated --time-scale=10 --iterations=5 "
                                         "--timeline=$W/t.timeline.pb --schedule=$W/s.schedule.pb "
                                         "--trace=$W/t.pftrace"));
  EXPECT_EQ(json["measured"]["backend"], "emulated");
  EXPECT_EQ(json["measured"]["steps_s"].size(), 5);
  EXPECT_EQ(json["measured"]["time_scale"], 10);
  EXPECT_EQ(json["gpus"], 1);
  EXPECT_GT(json["iteration_time_s"], 0);
  const auto timeline = ir::ReadTimeline(Work() + "/t.timeline.pb");
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_DOUBLE_EQ(ToSeconds(timeline->step), json["iteration_time_s"]);
  const auto schedule = ir::ReadSchedule(Work() + "/s.schedule.pb");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(timeline->spans.size(), schedule->programs.front().operations.size());
  EXPECT_FALSE(ReadFile(Work() + "/t.pftrace").value().empty());
}

TEST_F(CliRunTest, TheTableIsThatOfSimulate) {
  const std::string file = WriteOneRank();
  const std::string simulated = Run(absl::StrCat("simulate ", file)).out;
  const std::string measured =
      Run(absl::StrCat("run ", file, " --backend=emulated --time-scale=10 --iterations=3")).out;
  for (const char* text : {"Time of a GPU by stage: compute, bubbles by cause, optimizer",
                           "Memory of a GPU by stage", "pipeline    1F1B", "recompute   none"}) {
    EXPECT_THAT(simulated, HasSubstr(text));
    EXPECT_THAT(measured, HasSubstr(text));
  }
  EXPECT_THAT(measured, HasSubstr("backend     emulated: every operation only takes its time"));
  EXPECT_THAT(measured, HasSubstr("profile     core (hash "));  // it says what operations take
  EXPECT_THAT(measured, HasSubstr("3 steps after 2 of warm-up"));
  EXPECT_THAT(measured, HasSubstr("by the model of the plan, not measured"));
  EXPECT_THAT(measured, Not(HasSubstr("fidelity")));
}

TEST_F(CliRunTest, EfficiencyNeedsAProfileOfThisHardware) {
  const std::string run = absl::StrCat("run ", WriteOneRank(), " --backend=cpu --iterations=1");
  const Json without = RunJson(run);
  EXPECT_FALSE(without.contains("mfu"));
  EXPECT_EQ(without["no_efficiency"],
            "the profile core was not measured on this hardware; give --profile");
  const Json with = RunJson(run + " --profile=examples/cpu/core.textproto");
  EXPECT_TRUE(with.contains("mfu"));
  EXPECT_FALSE(with.contains("no_efficiency"));
  const std::string text = Run(run).out;
  EXPECT_THAT(text, HasSubstr("\nMFU         not printed: the profile core was not measured"));
  EXPECT_THAT(text, HasSubstr("\nplanned     with profile core (hash "));
  EXPECT_THAT(text, HasSubstr(" of 1 step\n"));
}

// A profiled microsecond takes a nanosecond: no machine can keep up.
TEST_F(CliRunTest, AnEmulationThatIsLateSaysSo) {
  const std::string run =
      absl::StrCat("run ", WriteOneRank(), " --backend=emulated --time-scale=0.001 --iterations=4");
  const Json measured = RunJson(run)["measured"];
  EXPECT_EQ(measured["kept_time"], false);
  EXPECT_GT(measured["late_s"], 0.02 * measured["due_s"].get<double>());
  EXPECT_GT(measured["better_time_scale"], 0.001);
  EXPECT_THAT(Run(run).out, HasSubstr("\nlate        emulated operations ended up to "));
  EXPECT_FALSE(
      RunJson(absl::StrCat("run ", WriteOneRank(), " --backend=cpu --iterations=1"))["measured"]
          .contains("late_s"));
}

// Of an even number of steps there are two in the middle: the figures are of the lower.
TEST_F(CliRunTest, OneFigureForTheMeasuredStep) {
  const Json json = RunJson(absl::StrCat("run ", WriteOneRank(), " --backend=cpu --iterations=4"));
  std::vector<double> steps = json["measured"]["steps_s"];
  std::sort(steps.begin(), steps.end());
  EXPECT_EQ(json["measured"]["median_s"], json["iteration_time_s"]);
  EXPECT_DOUBLE_EQ(json["iteration_time_s"], steps[1]);
}

TEST_F(CliRunTest, NumericsBeyondTheTolerance) {
  const Result result = Run(absl::StrCat(
      "run ", WriteOneRank(), " --backend=cpu --numerics --tolerance=0 --iterations=5 --warmup=2"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("optimus: not met: --numerics: worst relative error of the "));
  EXPECT_THAT(result.err, HasSubstr(", tolerance 0\n"));
  EXPECT_THAT(result.out,
              HasSubstr("backend     cpu: plain f32 loops of optimus itself, not oneDNN"));
  EXPECT_THAT(result.out, Not(HasSubstr("oneDNN 2")));
  EXPECT_THAT(result.out, HasSubstr("Loss by step (7 in all: warm-up steps train as well)"));
  EXPECT_THAT(result.out, HasSubstr("\n ...        ...        ...\n   7  "));
  EXPECT_THAT(result.out, HasSubstr("The worst 5 of "));
}

TEST_F(CliRunTest, ProfileOfOneRankIsAProfile) {
  const std::string file = WriteOneRank();
  const Json json = RunJson(absl::StrCat("profile --backend=cpu --for=", file,
                                         " --repetitions=3 --base=examples/cpu/core.textproto "
                                         "--out=$W/mine.textproto"));
  ASSERT_FALSE(json["kernels"].empty());
  EXPECT_EQ(json["kernels"][0]["repetitions"], 3);
  EXPECT_TRUE(json["transfers"].empty());
  EXPECT_FALSE(json.contains("interference"));
  const auto profile = hw::LoadProfile(Work() + "/mine.textproto");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->name(), "mine");
  EXPECT_EQ(profile->measured_kernels_size(), static_cast<int>(json["kernels"].size()));
  EXPECT_FALSE(profile->measured_on().empty());
  EXPECT_EQ(Run(absl::StrCat("simulate ", file, " --profile=$W/mine.textproto")).exit_code, 0);
}

// What cannot be measured is the experiment's own, not an H100's.
TEST_F(CliRunTest, ProfileKeepsTheRestFromTheExperimentsProfile) {
  const std::string file = WriteOneRank();
  const std::string command = absl::StrCat("profile --backend=cpu --for=", file,
                                           " --repetitions=2 --out=$W/mine.textproto");
  const Result result = Run(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Not measured, kept from core (hardware.profile of "));
  EXPECT_THAT(result.out, HasSubstr("fixed part of the optimizer step: 1 ms (ASSUMED)"));
  EXPECT_THAT(result.out, HasSubstr("\nfew samples "));
  EXPECT_THAT(result.out, Not(HasSubstr("another kind of machine")));
  EXPECT_EQ(hw::LoadProfile(Work() + "/mine.textproto")->gpu().optimizer_step_ms().value(), 1);

  const Json json = RunJson(command);
  EXPECT_EQ(json["base"], "core");
  EXPECT_THAT(json["not_measured"].get<std::vector<std::string>>(),
              IsSupersetOf({"gpu.optimizer_step_ms", "nvlink", "nic", "gpus_per_node"}));

  const Result other = Run(command + " --base=h100-80gb");
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("Not measured, kept from h100-80gb (--base)"));
  EXPECT_THAT(other.out, HasSubstr("h100-80gb is another kind of machine"));
  EXPECT_EQ(hw::LoadProfile(Work() + "/mine.textproto")->gpu().optimizer_step_ms().value(), 30);
}

// A schedule names no profile; the first experiment that does is asked.
TEST_F(CliRunTest, ProfileForASchedule) {
  const std::string file = WriteOneRank();
  ASSERT_EQ(Run(absl::StrCat("simulate ", file, " --schedule=$W/s.schedule.pb")).exit_code, 0);
  const std::string command =
      "profile --backend=cpu --repetitions=1 --out=$W/mine.textproto --for=$W/s.schedule.pb";
  EXPECT_EQ(RunJson(command)["base"], "h100-80gb");
  EXPECT_EQ(RunJson(absl::StrCat(command, " --for=", file))["base"], "core");
}

TEST_F(CliRunTest, ProfileFlagsThatMakeNoSense) {
  ExpectOneLineError("profile --backend=cpu", {"--out is required"});
  ExpectOneLineError("profile --backend=emulated --out=$W/p.textproto",
                     {"--backend=emulated: is none of cpu, cuda"});
  ExpectOneLineError("profile --backend=cpu --out=$W/p.pb", {"ends in .textproto"});
  ExpectOneLineError("profile --backend=cpu --out=$W/p.textproto --repetitions=0",
                     {"--repetitions: is 0"});
  ExpectOneLineError("profile --backend=cpu --out=$W/p.textproto --base=none", {"none"});
  ExpectOneLineError("profile --backend=cpu --out=$W/none/p.textproto", {"--out=", "no folder"});
}

}  // namespace
}  // namespace optimus::tools
