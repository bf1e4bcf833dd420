// `optimus plan`, and `optimus simulate` of strategy OPTIMUS, as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "tools/cli_testing.h"
#include "traces/perfetto_subset.pb.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

constexpr char kExample[] = "examples/10_frozen_encoder.textproto";
constexpr char kLanes[] = "examples/17_encoder_tp_2_llm_tp_4.textproto";

class CliPlanTest : public CliTest {
 protected:
  // kGpt with a small encoder inside its bubbles.
  static std::string Optimus() {
    return absl::StrReplaceAll(
        kGpt, {{"llm: \"gpt-11b\"",
                "llm: \"gpt-11b\" encoders { model: \"vit-3b\" sequences_per_sample: 1 "
                "sequence_length: 1024 }"},
               {"layout: EQUAL_LAYERS", "strategy: OPTIMUS"}});
  }
  void WriteOptimus(const std::string& from, const std::string& to) {
    EXPECT_THAT(Optimus(), HasSubstr(from));
    Write("o.textproto", absl::StrReplaceAll(Optimus(), {{from, to}}));
  }
  Json RunJson(const std::string& arguments) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }
};

TEST_F(CliPlanTest, HelpNamesEveryFlag) {
  const std::string help = Run("plan --help").out;
  for (const char* flag : {"--pipeline", "--scheduler", "--exhaustive", "--json", "--schedule",
                           "--profile", "--no-interference", "FILE"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
}

TEST_F(CliPlanTest, ThePlanIsItsOwnSimulation) {
  const Json plan = RunJson(absl::StrCat("plan --json ", kExample));
  const Json simulated = RunJson(absl::StrCat("simulate --json ", kExample));
  EXPECT_EQ(plan["simulated_iteration_time_s"], simulated["iteration_time_s"]);
  EXPECT_EQ(plan["predicted_iteration_time_s"], simulated["optimus"]["predicted_iteration_time_s"]);
  EXPECT_EQ(plan["predicted_iteration_time_s"], plan["plans"][0]["predicted_iteration_time_s"]);
  EXPECT_GE(plan["predicted_iteration_time_s"], plan["work_bound_s"]);
  EXPECT_GE(plan["predicted_iteration_time_s"], plan["fluid_bound_s"]);
  EXPECT_GE(plan["fluid_bound_s"], plan["least_fluid_bound_s"]);
  EXPECT_NEAR(plan["predicted_iteration_time_s"].get<double>() +
                  plan["order_effect_s"].get<double>() + plan["contention_effect_s"].get<double>() +
                  plan["interference_effect_s"].get<double>(),
              plan["simulated_iteration_time_s"].get<double>(), 1e-9);
}

// Encoders go into what bubbles another pipeline schedule leaves.
TEST_F(CliPlanTest, AnotherPipelineScheduleThanTheExperiments) {
  Write("o.textproto", Optimus());
  for (const auto& [name, text] :
       {std::pair("zb-h1", "ZB-H1"), {"zb-h2", "ZB-H2"}, {"dualpipe-v", "DualPipeV"}}) {
    const std::string flag = absl::StrCat("--pipeline=", name, " $W/o.textproto");
    const Json plan = RunJson("plan --json " + flag);
    const Json simulated = RunJson("simulate --json " + flag);
    EXPECT_EQ(plan["simulated_iteration_time_s"], simulated["iteration_time_s"]) << name;
    EXPECT_THAT(Run("simulate " + flag).out, HasSubstr(absl::StrCat("pipeline    ", text)));
  }
  const Json own = RunJson("simulate --json $W/o.textproto");
  const Json same = RunJson("simulate --pipeline=1f1b --json $W/o.textproto");
  EXPECT_EQ(own["iteration_time_s"], same["iteration_time_s"]);
  EXPECT_THAT(Run("simulate --pipeline=interleaved $W/o.textproto").out,
              HasSubstr("pipeline    interleaved 1F1B, V = 2 model chunks"));
}

// An automatic schedule says in which memory.
TEST_F(CliPlanTest, MemoryOfAutomaticSchedules) {
  WriteOptimus("schedule: ONE_F_ONE_B", "schedule: ZB_2P");
  EXPECT_THAT(Run("simulate $W/o.textproto").out,
              HasSubstr("times in twice the micro-batches of 1F1B"));
  WriteOptimus("schedule: ONE_F_ONE_B", "schedule: ZB_2P activation_limit_gib: 60");
  EXPECT_THAT(Run("simulate $W/o.textproto").out, HasSubstr("times in 60 GiB of activations"));
  WriteOptimus("schedule: ONE_F_ONE_B", "schedule: ZB_2P activation_limit_gib: 0.001");
  const Result result = Run("plan $W/o.textproto");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("plan.activation_limit_gib: 0.001, but one micro-batch keeps"));
}

TEST_F(CliPlanTest, PipelineSchedulesThatCannotBe) {
  Write("o.textproto", Optimus());
  Write("o.schedule.pb", "");
  for (const auto& [arguments, text] :
       {std::pair("plan --pipeline=zbh1 $W/o.textproto", "--pipeline=zbh1: is none of gpipe|1f1b"),
        {"plan --pipeline=dualpipe $W/o.textproto", "plan.schedule: DUALPIPE under strategy OPTI"},
        {"simulate --pipeline=zb-h1 --profile=h100-80gb $W/o.schedule.pb",
         "--pipeline with a schedule file, which has its order already"}}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_THAT(result.err, HasSubstr(text));
  }
}

// The plans that were run come first, by their simulated step, then the others by prediction.
TEST_F(CliPlanTest, TheListSchedulerIsJudgedBySimulationAndNeverSlower) {
  const Json list = RunJson(absl::StrCat("plan --json --scheduler=list ", kExample));
  const Json paper = RunJson(absl::StrCat("plan --json --scheduler=paper ", kExample));
  EXPECT_LE(list["simulated_iteration_time_s"], paper["simulated_iteration_time_s"]);
  EXPECT_EQ(list["judged_iteration_time_s"], list["simulated_iteration_time_s"]);
  const Json& plans = list["plans"];
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const bool judged = plans[i].contains("judged_iteration_time_s");
    const bool before = plans[i - 1].contains("judged_iteration_time_s");
    EXPECT_TRUE(before || !judged) << i;
    if (before != judged) continue;
    const char* by = judged ? "judged_iteration_time_s" : "predicted_iteration_time_s";
    EXPECT_LE(plans[i - 1][by], plans[i][by]) << i;
  }
}

TEST_F(CliPlanTest, PlansAreRankedAndTheTextShowsThem) {
  const Json plan = RunJson(absl::StrCat("plan --json ", kExample));
  ASSERT_GT(plan["plans"].size(), 1U);
  for (std::size_t i = 1; i < plan["plans"].size(); ++i) {
    EXPECT_LE(plan["plans"][i - 1]["predicted_iteration_time_s"],
              plan["plans"][i]["predicted_iteration_time_s"]);
  }
  const std::string text = Run(absl::StrCat("plan ", kExample)).out;
  EXPECT_THAT(text, AllOf(HasSubstr("Plans, best first: by simulated step"),
                          HasSubstr("not hidden"), HasSubstr("gap"), HasSubstr("\nwall ")));
}

TEST_F(CliPlanTest, ThePlansScheduleRunsAsThePlan) {
  for (const char* scheduler : {"paper", "list"}) {
    const Json plan = RunJson(absl::StrCat("plan --json --scheduler=", scheduler,
                                           " --schedule=$W/s.schedule.pb ", kLanes));
    EXPECT_EQ(plan["scheduler"], scheduler);
    const Json schedule = RunJson("simulate --json $W/s.schedule.pb --profile=h100-80gb");
    EXPECT_EQ(schedule["iteration_time_s"], plan["simulated_iteration_time_s"]) << scheduler;
  }
}

TEST_F(CliPlanTest, TheSchedulerFlagWinsOverTheExperiment) {
  const Json paper = RunJson(absl::StrCat("simulate --json --scheduler=paper ", kLanes));
  EXPECT_EQ(paper["optimus"]["scheduler"], "paper");
  const Json list = RunJson(absl::StrCat("plan --json --scheduler=list ", kExample));
  EXPECT_EQ(list["scheduler"], "list");
  ExpectOneLineError(absl::StrCat("plan --scheduler=best ", kExample),
                     {"--scheduler=best", "paper|list"});
  Write("e.textproto", kGpt);
  ExpectBadInput("$W/e.textproto --scheduler=list", {"--scheduler=list", "plan.strategy: OPTIMUS"});
}

TEST_F(CliPlanTest, ExhaustiveIsNeverWorse) {
  const Json local = RunJson(absl::StrCat("plan --json ", kExample));
  const Json all = RunJson(absl::StrCat("plan --json --exhaustive ", kExample));
  EXPECT_EQ(all["exhaustive"], true);
  EXPECT_LE(all["predicted_iteration_time_s"], local["predicted_iteration_time_s"]);
  EXPECT_GE(all["splits_evaluated"], local["splits_evaluated"]);
}

TEST_F(CliPlanTest, InterferenceCanBeLeftOut) {
  const Json with = RunJson(absl::StrCat("simulate --json ", kExample));
  const Json without = RunJson(absl::StrCat("simulate --json --no-interference ", kExample));
  EXPECT_GE(with["iteration_time_s"], without["iteration_time_s"]);
  EXPECT_EQ(without["optimus"]["interference_effect_s"], 0.0);
  for (const auto& [name, factor] : without["interference"].items()) EXPECT_EQ(factor, 1.0) << name;
  EXPECT_NEAR(with["iteration_time_s"].get<double>() - without["iteration_time_s"].get<double>(),
              with["optimus"]["interference_effect_s"].get<double>(), 1e-12);
  WriteOptimus("gpus: 16", "gpus: 16 no_interference: true");
  const Result result = Run("plan $W/o.textproto");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("hardware.no_interference"));
}

TEST_F(CliPlanTest, OtherStrategiesAreRefusedWithAHint) {
  Write("e.textproto", kGpt);
  ExpectOneLineError("plan $W/e.textproto",
                     {"e.textproto", "plan.strategy", "PIPELINE", "OPTIMUS"});
  ExpectOneLineError("plan examples/06_encoder_in_stage_0.textproto",
                     {"06_encoder_in_stage_0", "set plan.strategy: OPTIMUS"});
  // The strategy is said before the model that does not exist.
  Write("e.textproto", absl::StrReplaceAll(kGpt, {{"gpt-11b", "no-such-model"}}));
  ExpectOneLineError("plan $W/e.textproto", {"plan.strategy", "PIPELINE"});
  Write("o.textproto", absl::StrReplaceAll(Optimus(), {{"gpt-11b", "no-such-model"}}));
  ExpectOneLineError("plan $W/o.textproto", {"no-such-model"});
  ExpectOneLineError("plan $W/x.schedule.pb", {"x.schedule.pb", "optimus simulate"});
}

TEST_F(CliPlanTest, BadScheduleNamesAreRefusedBeforePlanning) {
  ExpectOneLineError(absl::StrCat("plan --schedule=$W/x.pb ", kExample),
                     {"--schedule", "x.pb", ".schedule.pb or .schedule.textproto"});
  ExpectOneLineError(absl::StrCat("plan --schedule=$W/none/x.schedule.pb ", kExample),
                     {"--schedule", "none"});
}

TEST_F(CliPlanTest, PlansThatFitNoMemoryAreOneLine) {
  Write("o.textproto", absl::StrReplaceAll(Optimus(), {{"gpus: 16", "gpus: 2"},
                                                       {"data_parallel: 2", "data_parallel: 1"},
                                                       {"tensor_parallel: 4", "tensor_parallel: 1"},
                                                       {"RECOMPUTE_FULL", "RECOMPUTE_NONE"}}));
  for (const char* command : {"plan", "simulate"}) {
    ExpectOneLineError(absl::StrCat(command, " $W/o.textproto"), {"o.textproto", "GiB"});
  }
}

TEST_F(CliPlanTest, AnEncoderThatCannotBePlacedIsOneLine) {
  WriteOptimus(
      "strategy: OPTIMUS",
      "strategy: OPTIMUS optimus { encoder_plans { pipeline_parallel: 2 tensor_parallel: 3 "
      "} }");
  ExpectOneLineError("plan $W/o.textproto",
                     {"o.textproto", "plan.optimus.encoder_plans[0].tensor_parallel", "3"});
  // 18 heads do not divide by four.
  WriteOptimus(
      "strategy: OPTIMUS",
      "strategy: OPTIMUS optimus { encoder_plans { pipeline_parallel: 2 tensor_parallel: 4 "
      "} }");
  ExpectOneLineError("plan $W/o.textproto", {"o.textproto", "18"});
  // Four micro-batches on the pipelines of one encoder; the split says five.
  WriteOptimus(
      "strategy: OPTIMUS",
      "strategy: OPTIMUS optimus { encoder_plans { pipeline_parallel: 2 tensor_parallel: 2 "
      "split: 4 split: 1 } }");
  ExpectOneLineError("plan $W/o.textproto", {"o.textproto", "plan.optimus.encoder_plans[0].split"});
}

TEST_F(CliPlanTest, ASchedulesVersionAndWorldAreChecked) {
  ASSERT_EQ(Run(absl::StrCat("plan ", kLanes, " --schedule=$W/s.schedule.textproto")).exit_code, 0);
  const std::string text = *ReadFile(Work() + "/s.schedule.textproto");
  const auto simulate = [&](const std::string& from, const std::string& to,
                            const std::vector<std::string>& words) {
    ASSERT_THAT(text, HasSubstr(from));
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    Write("c.schedule.textproto", changed);
    ExpectOneLineError("simulate $W/c.schedule.textproto --profile=h100-80gb", words);
  };
  simulate("version: ", "version: 9", {"c.schedule.textproto", "version"});
  simulate("  pp: 4", "  pp: 5", {"c.schedule.textproto", "stage"});
  simulate("  tp: 4", "  tp: 3", {"c.schedule.textproto", "lanes"});
}

TEST_F(CliPlanTest, ATraceShowsEveryLane) {
  const Result result = Run(absl::StrCat("simulate ", kLanes, " --trace=$W/t.pftrace"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  traces::perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(*ReadFile(Work() + "/t.pftrace")));
  std::vector<std::string> processes, tracks;
  for (const auto& packet : trace.packet()) {
    const auto& descriptor = packet.track_descriptor();
    if (descriptor.has_process()) processes.push_back(descriptor.process().process_name());
    if (descriptor.has_thread()) tracks.push_back(descriptor.thread().thread_name());
  }
  EXPECT_EQ(processes.size(), 8U);  // 4 stages of 2 lanes
  EXPECT_THAT(processes, ::testing::Contains(HasSubstr("stage 3 lane 1 (rank ")));
  EXPECT_THAT(tracks,
              AllOf(::testing::Contains("encoder communication"),
                    ::testing::Contains("encoder send"), ::testing::Contains("encoder receive")));
}

TEST_F(CliPlanTest, SameInputSameOutput) {
  const auto run = [&] {
    const std::string out = Run(absl::StrCat("plan --scheduler=list ", kLanes)).out;
    return out.substr(0, out.rfind("\nwall "));
  };
  const std::string first = run();
  EXPECT_THAT(first, Not(EndsWith("\n\n\n")));
  EXPECT_EQ(run(), first);
}

}  // namespace
}  // namespace optimus::tools
