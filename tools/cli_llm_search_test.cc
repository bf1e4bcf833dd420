// `optimus plan --search-llm` as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// Small enough to try everything, with room to be better.
constexpr char kSmall[] = R"(
name: "small"
llm: "examples/models/gpt-2b.textproto"
encoders { model: "examples/models/vit-300m.textproto" sequences_per_sample: 2
           sequence_length: 512 sequences_per_slice: 1 }
hardware { profile: "h100-80gb" gpus: 8 }
batch { global_batch: 8 micro_batch: 1 sequence_length: 1024 }
plan { strategy: OPTIMUS data_parallel: 1 pipeline_parallel: 4 tensor_parallel: 2
       schedule: ONE_F_ONE_B recompute: RECOMPUTE_FULL }
)";

class CliLlmSearchTest : public CliTest {
 protected:
  // Models are looked for beside the file: as paths from the root of the file system.
  std::string Small(const std::string& from = "", const std::string& to = "") {
    std::string text = absl::StrReplaceAll(
        kSmall, {{"examples/models", absl::StrCat(DataDir(), "/examples/models")}});
    if (!from.empty()) {
      EXPECT_THAT(text, HasSubstr(from));
      text = absl::StrReplaceAll(text, {{from, to}});
    }
    Write("small.textproto", text);
    return "plan --search-llm $W/small.textproto ";
  }
  Json RunJson(const std::string& arguments) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json json = Json::parse(result.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << result.out;
    return json;
  }
  static void DropWall(Json& json) {
    json.erase("wall_s");
    json.erase("peak_memory_mib");
  }
};

TEST_F(CliLlmSearchTest, FindsAPlanThatIsAsGoodAndAccountsForEveryCombination) {
  const Json json = RunJson(Small() + "--json");
  EXPECT_TRUE(json["proven"]);
  EXPECT_TRUE(json["own_is_combination"]);
  EXPECT_LE(json["plans"][0]["iteration_time_s"], json["own_plan"]["iteration_time_s"]);
  std::int64_t sum = json["impossible_in_planning"].get<std::int64_t>() +
                     json["too_large"].get<std::int64_t>() +
                     json["too_large_with_encoders"].get<std::int64_t>() +
                     json["pruned"].get<std::int64_t>() + json["simulated"].get<std::int64_t>();
  for (const Json& group : json["impossible"]) sum += group["combinations"].get<std::int64_t>();
  EXPECT_EQ(sum, json["combinations"]);
  EXPECT_GT(json["pruned"], 0);
  for (const Json& plan : json["plans"]) {
    double parts = 0;
    for (const auto& [name, seconds] : plan["time"].items()) parts += seconds.get<double>();
    EXPECT_NEAR(parts, plan["iteration_time_s"].get<double>(), 1e-9);
    if (plan.contains("bound_s")) {
      EXPECT_LE(plan["bound_s"], plan["iteration_time_s"]);
    }
  }
}

TEST_F(CliLlmSearchTest, TheResultIsTheSameForAnyNumberOfJobs) {
  Json one = RunJson(Small() + "--json --jobs=1");
  Json three = RunJson(Small() + "--json --jobs=3");
  DropWall(one);
  DropWall(three);
  EXPECT_EQ(one, three);
}

TEST_F(CliLlmSearchTest, WhatItWritesIsTheBestPlan) {
  const Json json = RunJson(Small() +
                            "--json --experiment=$W/best.textproto "
                            "--schedule=$W/best.schedule.pb");
  const Json& best = json["plans"][0];
  const Json again = RunJson("simulate --json $W/best.textproto");
  EXPECT_EQ(again["iteration_time_s"], best["iteration_time_s"]);
  const Json schedule = RunJson("simulate --json --profile=h100-80gb $W/best.schedule.pb");
  EXPECT_EQ(schedule["iteration_time_s"], best["iteration_time_s"]);
}

TEST_F(CliLlmSearchTest, TextNamesTheOwnPlanAndWhy) {
  const Result result = Run(Small() + "--top=2");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* words : {"searched", "impossible", "pruned", "own", "Why plan 1 wins"}) {
    EXPECT_THAT(result.out, HasSubstr(words));
  }
}

TEST_F(CliLlmSearchTest, WithoutTimeOnlyTheOwnPlanIsThereAndNothingIsProven) {
  const Json json = RunJson(Small() + "--json --search-time=0");
  EXPECT_FALSE(json["proven"]);
  EXPECT_EQ(json["plans"].size(), 1U);
  EXPECT_TRUE(json["plans"][0]["own"]);
  EXPECT_GT(json["open"]["combinations"], 0);
}

TEST_F(CliLlmSearchTest, AnLlmAloneIsSearchedAsAPipeline) {
  Write("gpt.textproto", kGpt);
  const Json json = RunJson("plan --search-llm --json --search-time=20 $W/gpt.textproto");
  EXPECT_EQ(json["plans"][0]["strategy"], "PIPELINE");
  EXPECT_LE(json["plans"][0]["iteration_time_s"], json["own_plan"]["iteration_time_s"]);
}

TEST_F(CliLlmSearchTest, WhereNothingFitsTheSmallestNeedIsSaid) {
  ExpectOneLineError(
      Small(absl::StrCat(DataDir(), "/examples/models/gpt-2b.textproto"), "gpt-175b"),
      {"small.textproto", "fits in a GPU's memory", "needs least", "GiB"});
}

TEST_F(CliLlmSearchTest, FlagsThatMakeNoSenseAreRefused) {
  const std::string small = Small();
  const std::string plan = "plan $W/small.textproto ";
  ExpectOneLineError(plan + "--jobs=2", {"--jobs", "--search-llm"});
  ExpectOneLineError(plan + "--top=2", {"--top", "--search-llm"});
  ExpectOneLineError(plan + "--search-time=2", {"--search-time", "--search-llm"});
  ExpectOneLineError(plan + "--experiment=$W/a.textproto", {"--experiment", "--search-llm"});
  ExpectOneLineError(small + "--search-time=nan", {"--search-time", "nan"});
  ExpectOneLineError(small + "--exhaustive", {"--exhaustive"});
  ExpectOneLineError(small + "--pipeline=ZB_H1", {"--pipeline"});
  ExpectOneLineError(small + "--experiment=$W/a.json", {"--experiment", ".textproto"});
  ExpectOneLineError(small + "--experiment=$W/small.textproto",
                     {"--experiment", "small.textproto"});
  ExpectOneLineError("plan --search-llm $W/a.schedule.pb", {"a.schedule.pb", "schedule"});
}

TEST_F(CliLlmSearchTest, ExperimentsThatCannotBeSearchedAreRefused) {
  ExpectOneLineError(
      Small("sequences_per_slice: 1", "sequences_per_slice: 1 micro_batches_without_input: 1"),
      {"small.textproto: encoders[0].micro_batches_without_input"});
  ExpectOneLineError(Small("gpus: 8", "gpus: 0"), {"small.textproto: hardware.gpus"});
}

TEST_F(CliLlmSearchTest, AnOwnPlanThatIsImpossibleIsARowThatSaysWhy) {
  const Json json =
      RunJson(Small("pipeline_parallel: 4", "pipeline_parallel: 3") + "--json --search-time=20");
  EXPECT_THAT(json["own_plan"]["impossible"].get<std::string>(), HasSubstr("hardware.gpus"));
  EXPECT_EQ(json["own_plan"]["pipeline_parallel"], 3);
  const Json batch = RunJson(Small("micro_batch: 1", "micro_batch: 0") + "--json --search-time=20");
  EXPECT_THAT(batch["own_plan"]["impossible"].get<std::string>(), HasSubstr("batch.micro_batch"));
  EXPECT_FALSE(json["own_is_combination"]);
  EXPECT_GT(json["plans"].size(), 0U);
}

TEST_F(CliLlmSearchTest, AMemoryLimitIsObeyedByLlmAndEncoders) {
  const Json free = RunJson(Small() + "--json");
  EXPECT_EQ(free["memory_limit_gib"], free["memory_capacity_gib"]);
  const double limit = 0.75 * free["plans"][0]["memory_gib"].get<double>();
  const Json json = RunJson(Small() + "--json --experiment=$W/best.textproto --memory-limit=" +
                            absl::StrCat(limit) + "GiB");
  EXPECT_NEAR(json["memory_limit_gib"].get<double>(), limit, 1e-3);
  ASSERT_GT(json["plans"].size(), 0U);
  for (const Json& plan : json["plans"]) EXPECT_LE(plan["memory_gib"], json["memory_limit_gib"]);
  EXPECT_GE(json["plans"][0]["iteration_time_s"], free["plans"][0]["iteration_time_s"]);
  const Json again = RunJson("simulate --json $W/best.textproto");
  EXPECT_THAT(again["assumptions"].dump(), HasSubstr("--memory-limit"));
  ExpectOneLineError(Small() + "--memory-limit=60", {"--memory-limit", "GiB"});
  ExpectOneLineError(Small() + "--memory-limit=1kB", {"--memory-limit", "2 MiB"});
  ExpectOneLineError("plan $W/small.textproto --memory-limit=60GiB",
                     {"--memory-limit", "--search-llm"});
}

}  // namespace
}  // namespace optimus::tools
