// `optimus schedule`, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "schedule/pipeline/compute_schedule_csv.h"
#include "schedule/pipeline/interleaved.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr char kInterleaved[] = "examples/03_interleaved.textproto";

class CliScheduleTest : public CliTest {
 protected:
  void ExpectRefused(const std::string& arguments, const testing::Matcher<std::string>& error) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, error);
  }
};

TEST_F(CliScheduleTest, HelpNamesEveryFlag) {
  const std::string help = Run("schedule export --help").out;
  for (const char* flag : {"--csv", "--pipeline", "--profile", "FILE"})
    EXPECT_THAT(help, HasSubstr(flag));
}

// Two stages, two micro-batches: PyTorch's cells, idle steps empty.
TEST_F(CliScheduleTest, PrintsTheOrder) {
  const Result result = Run("schedule export examples/01_two_stage_1f1b.textproto --csv=-");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(CliScheduleTest, WritesWhatIsReadAgain) {
  const Result result = Run(absl::StrCat("schedule export ", kInterleaved, " --csv=$W/o.csv"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  const auto read = pipeline::ReadComputeSchedule(*ReadFile(absl::StrCat(Work(), "/o.csv")));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->order.slots,
            pipeline::Interleaved({4, 2, 8, 0, pipeline::WarmUp::kMegatron})->slots);
}

// Of the encoders' bubbles nothing is said: the LLM's order is that of its own pipeline.
TEST_F(CliScheduleTest, OptimusExportsTheLlm) {
  Write("plain.textproto", kGpt);
  Write("optimus.textproto",
        absl::StrReplaceAll(kGpt, {{"llm: \"gpt-11b\"",
                                    "llm: \"gpt-11b\" encoders { model: \"vit-3b\" "
                                    "sequences_per_sample: 1 sequence_length: 1024 }"},
                                   {"layout: EQUAL_LAYERS", "strategy: OPTIMUS"}}));
  const Result plain = Run("schedule export $W/plain.textproto --csv=-");
  EXPECT_THAT(plain.out, HasSubstr("0F0,0F1,,0B0"));
  EXPECT_EQ(Run("schedule export $W/optimus.textproto --csv=-").out, plain.out);
}

// The same as the experiment with that schedule written into it; model chunks come along.
TEST_F(CliScheduleTest, AnotherPipelineScheduleThanTheExperiments) {
  Write("plain.textproto", kGpt);
  for (const auto& [name, schedule] : {std::pair("zb-h1", "ZB_H1"),
                                       {"zb-v", "ZB_V"},
                                       {"gpipe", "GPIPE"},
                                       {"interleaved", "INTERLEAVED model_chunks: 2"}}) {
    Write("own.textproto", absl::StrReplaceAll(kGpt, {{"ONE_F_ONE_B", schedule}}));
    const Result own = Run("schedule export $W/own.textproto --csv=-");
    EXPECT_EQ(own.exit_code, 0) << own.err;
    const Result flag =
        Run(absl::StrCat("schedule export $W/plain.textproto --csv=- --pipeline=", name));
    EXPECT_EQ(flag.exit_code, 0) << flag.err;
    EXPECT_EQ(flag.out, own.out) << name;
    EXPECT_NE(flag.out, Run("schedule export $W/plain.textproto --csv=-").out) << name;
  }
  ExpectRefused("schedule export $W/plain.textproto --csv=- --pipeline=zbh1",
                HasSubstr("--pipeline=zbh1: is none of gpipe|1f1b"));
  ExpectRefused("schedule export $W/s.schedule.pb --csv=- --pipeline=zb-h1",
                HasSubstr("give the experiment that it was made from"));
}

// The order of the LLM in the plan that `optimus plan` prints first: its warm-up, chosen with the
// encoders in place.
TEST_F(CliScheduleTest, OptimusExportsTheWarmUpOfTheBestPlan) {
  const auto write = [&](const std::string& name, const std::string& warm_up,
                         const std::string& scheduler) {
    Write(name, absl::StrReplaceAll(
                    kGpt, {{"llm: \"gpt-11b\"",
                            "llm: \"gpt-11b\" encoders { model: \"vit-3b\" "
                            "sequences_per_sample: 1 sequence_length: 1024 }"},
                           {"schedule: ONE_F_ONE_B",
                            absl::StrCat("schedule: INTERLEAVED model_chunks: 4 warm_up: ", warm_up,
                                         " optimus { scheduler: ", scheduler, " }")},
                           {"layout: EQUAL_LAYERS", "strategy: OPTIMUS"}}));
  };
  const auto exported = [&](const std::string& name) {
    const Result result = Run(absl::StrCat("schedule export $W/", name, " --csv=-"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  write("megatron.textproto", "MEGATRON", "PAPER");
  write("deferred.textproto", "DEFERRED", "PAPER");
  EXPECT_NE(exported("megatron.textproto"), exported("deferred.textproto"));
  for (const char* scheduler : {"PAPER", "LIST"}) {
    write("best.textproto", "BEST", scheduler);
    const auto plan = Json::parse(Run("plan --json $W/best.textproto").out);
    const std::string warm_up = plan["plans"][0]["warm_up"];
    EXPECT_EQ(exported("best.textproto"),
              exported(absl::StrCat(absl::AsciiStrToLower(warm_up), ".textproto")))
        << scheduler;
  }
}

TEST_F(CliScheduleTest, Refuses) {
  ExpectRefused("schedule", HasSubstr("subcommand"));
  ExpectRefused(absl::StrCat("schedule export ", kInterleaved), HasSubstr("--csv is required"));
  ExpectRefused(absl::StrCat("schedule export ", kInterleaved, " --csv ''"), HasSubstr("is empty"));
  ExpectRefused("schedule export $W/no.textproto --csv=-", HasSubstr("no.textproto"));
  ExpectRefused("schedule export $W/a.schedule.pb --csv=-",
                HasSubstr("give the experiment that it was made from"));
  ExpectRefused(absl::StrCat("schedule export ", kInterleaved, " --csv=$W/none/o.csv"),
                HasSubstr("--csv="));
  Write("fsdp.textproto",
        absl::StrReplaceAll(kGpt, {{"schedule: ONE_F_ONE_B", "strategy: FSDP"},
                                   {"data_parallel: 2", "data_parallel: 16"},
                                   {"pipeline_parallel: 2", "pipeline_parallel: 1"},
                                   {"tensor_parallel: 4", "tensor_parallel: 1"},
                                   {"global_batch: 8", "global_batch: 16"},
                                   {"layout: EQUAL_LAYERS", ""}}));
  ExpectRefused("schedule export $W/fsdp.textproto --csv=-",
                AllOf(HasSubstr("fsdp.textproto: plan.strategy: FSDP"), HasSubstr("no pipeline")));
  Write("e.textproto", kGpt);
  ExpectRefused("schedule export $W/e.textproto --csv=$W/e.textproto", HasSubstr("--csv"));
  EXPECT_THAT(Files(), ElementsAre("e.textproto", "fsdp.textproto"));
  EXPECT_EQ(*ReadFile(absl::StrCat(Work(), "/e.textproto")), kGpt);
}

// What was written runs as the schedule that it came from, and is not replaced by its own export.
TEST_F(CliScheduleTest, CustomScheduleRunsTheFile) {
  Write("plain.textproto", kGpt);
  Write("custom.textproto",
        absl::StrReplaceAll(
            kGpt, {{"schedule: ONE_F_ONE_B", "schedule: CUSTOM schedule_file: \"o.csv\""}}));
  EXPECT_EQ(Run("schedule export $W/plain.textproto --csv=$W/o.csv").exit_code, 0);
  const Result custom = Run("simulate --json $W/custom.textproto");
  ASSERT_EQ(custom.exit_code, 0) << custom.err;
  const auto plain = Json::parse(Run("simulate --json $W/plain.textproto").out);
  EXPECT_EQ(Json::parse(custom.out)["iteration_time_s"], plain["iteration_time_s"]);
  EXPECT_EQ(Run("schedule export $W/custom.textproto --csv=-").out,
            *ReadFile(absl::StrCat(Work(), "/o.csv")));
  ExpectRefused("schedule export $W/custom.textproto --csv=$W/o.csv",
                HasSubstr("plan.schedule_file"));
  // Communication of PyTorch's own dumps changes nothing, and the report says that it is not used.
  EXPECT_THAT(plain["notes"].dump(), Not(HasSubstr("communication is left out")));
  std::string comms = *ReadFile(absl::StrCat(Work(), "/o.csv"));
  Write("o.csv", absl::StrReplaceAll(comms, {{"0F1,", "0SEND_F0,0F1,"}, {"1B0", "1B0,1SEND_B0"}}));
  const auto left_out = Json::parse(Run("simulate --json $W/custom.textproto").out);
  EXPECT_EQ(left_out["iteration_time_s"], plain["iteration_time_s"]);
  EXPECT_THAT(left_out["notes"].dump(),
              HasSubstr("communication is left out (1 SEND_B, 1 SEND_F)"));
  Write("o.csv", "0F0,0F1,0B0,0B1\n1F0,1X0\n");
  ExpectRefused("simulate $W/custom.textproto",
                AllOf(HasSubstr("custom.textproto: plan.schedule_file: "),
                      HasSubstr("o.csv: rank 1 (line 2), cell 2 \"1X0\"")));
}

TEST_F(CliScheduleTest, DualPipeHasNoSuchFile) {
  Write("d.textproto",
        "profiled { forward_ms: 1 backward_ms: 1 weight_ms: 1 } hardware { profile: \"h100-80gb\" "
        "gpus: 4 } batch { global_batch: 8 micro_batch: 1 } plan { data_parallel: 1 "
        "pipeline_parallel: 4 tensor_parallel: 1 schedule: DUALPIPE no_optimizer: true }");
  ExpectRefused("schedule export $W/d.textproto --csv=-",
                AllOf(HasSubstr("d.textproto: "), HasSubstr("DualPipeV")));
}

TEST_F(CliScheduleTest, SaysWhenStandardOutputIsFull) {
  const Result result =
      Run(absl::StrCat("schedule export ", kInterleaved, " --csv=-"), "1>/dev/full");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("standard output"));
}

}  // namespace
}  // namespace optimus::tools
