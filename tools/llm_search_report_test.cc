#include "tools/llm_search_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tools/llm_search_json.h"
#include "tools/llm_search_text.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

SearchedPlan Plan(double step_s, bool own = false) {
  SearchedPlan plan;
  plan.candidate = {step::Plan::OPTIMUS, 4, 2, 8, 3, 1, step::Plan::RECOMPUTE_SELECTIVE};
  plan.strategy = "OPTIMUS";
  plan.schedule = "interleaved";
  plan.layout = "EQUAL_LAYERS";
  plan.encoders = "PP 1 x TP 4";
  plan.warm_up = "deferred";
  plan.step = FromSeconds(step_s);
  plan.llm_step = FromSeconds(step_s / 2);
  plan.mfu = 0.25;
  plan.memory_gib = 40.5;
  plan.bound = FromSeconds(step_s * 0.75);
  plan.own = own;
  return plan;
}

double& Part(SearchedPlan& plan, StepPart part) {
  return plan.parts[static_cast<std::size_t>(part)];
}

LlmSearchReport MakeReport() {
  LlmSearchReport report;
  report.version = "1";
  report.experiment = "e";
  report.profile = "p";
  report.profile_hash = "h";
  report.scheduler = "paper";
  report.gpus = 64;
  report.combinations = 100;
  llm_search::SearchedValues& values = report.values.emplace_back();
  values.data_parallel = {4, 8};
  values.pipeline_parallel = {2};
  values.tensor_parallel = {4, 8};
  values.model_chunks = {1, 3};
  values.micro_batch = {1};
  values.recompute = {step::Plan::RECOMPUTE_NONE, step::Plan::RECOMPUTE_FULL};
  values.combinations = 100;
  report.impossible = {{"batch.global_batch", 40, "batch.global_batch: 9 is odd; hint"}};
  report.too_large = 20;
  report.least_memory_gib = 99;
  report.least_memory_plan = "the smallest";
  report.capacity_gib = 80;
  report.profile_capacity_gib = 80;
  report.pruned = 30;
  report.simulated = 10;
  report.search_time_s = 50;
  report.plans = {Plan(1), Plan(1.5), Plan(2, true)};
  report.own = report.plans.back();
  return report;
}

TEST(WhyText, NamesTheLargestDifferencesFirst) {
  SearchedPlan best = Plan(1), other = Plan(1.2);
  Part(best, StepPart::kWarmUp) = 0.1;
  Part(other, StepPart::kWarmUp) = 0.41;
  Part(best, StepPart::kTensorParallel) = 0.3;
  Part(other, StepPart::kTensorParallel) = 0.19;
  Part(other, StepPart::kOptimizer) = 0.004;  // less than half a percent
  EXPECT_EQ(WhyText(best, other),
            "0.310 s less pipeline warm-up, 0.110 s more waiting for tensor parallelism");
  EXPECT_EQ(WhyText(best, best), "no part of the step differs by half a percent of it");
}

TEST(SearchedPlan, ComesThroughAPipe) {
  SearchedPlan plan = Plan(1.25);
  Part(plan, StepPart::kRecompute) = 1.0 / 3;
  plan.fits = false;
  const auto again = DecodePlan(EncodePlan(plan));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->candidate, plan.candidate);
  EXPECT_EQ(again->strategy, plan.strategy);
  EXPECT_EQ(again->schedule, plan.schedule);
  EXPECT_EQ(again->layout, plan.layout);
  EXPECT_EQ(again->encoders, plan.encoders);
  EXPECT_EQ(again->warm_up, plan.warm_up);
  EXPECT_EQ(again->step, plan.step);
  EXPECT_EQ(again->llm_step, plan.llm_step);
  EXPECT_EQ(again->mfu, plan.mfu);
  EXPECT_EQ(again->memory_gib, plan.memory_gib);
  EXPECT_EQ(again->fits, plan.fits);
  EXPECT_EQ(again->parts, plan.parts);
  EXPECT_FALSE(DecodePlan("{").ok());
}

TEST(LlmSearchText, SaysWhatWasSearchedAndWhy) {
  const std::string text = LlmSearchText(MakeReport(), 2);
  for (const char* words :
       {"100 combinations", "40 by batch.global_batch", "20 do not fit", "by 19.00 GiB or more",
        "the smallest", "30 by a lower bound", "no other of these combinations can be better",
        "3, own", "TP 4, 8", "V 1, 3", "recompute none, full", "EQUAL_LAYERS", "against 2",
        "against 3"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  EXPECT_THAT(LlmSearchText(MakeReport(), 1), Not(HasSubstr("against 2")));
}

TEST(LlmSearchText, SaysWhereNothingIsProven) {
  LlmSearchReport report = MakeReport();
  report.open = OpenSearch{7, "that one", FromSeconds(0.5)};
  const std::string text = LlmSearchText(report, 5);
  EXPECT_THAT(text, HasSubstr("not"));
  EXPECT_THAT(text, HasSubstr("7 combinations are left"));
  EXPECT_THAT(text, HasSubstr("that one"));
  EXPECT_THAT(text, Not(HasSubstr("can be better: all")));
}

TEST(LlmSearchText, ShowsAnOwnPlanThatDoesNotFit) {
  LlmSearchReport report = MakeReport();
  report.plans.pop_back();
  report.own.fits = false;
  EXPECT_THAT(LlmSearchText(report, 5), HasSubstr("own, too large"));
}

TEST(LlmSearchText, ShowsAnOwnPlanThatIsImpossibleAndWhy) {
  LlmSearchReport report = MakeReport();
  report.plans.pop_back();
  step::Experiment experiment;
  experiment.mutable_plan()->set_pipeline_parallel(7);
  report.own = ImpossiblePlan(experiment, "plan.layout: 9 layers; hint");
  report.own.own = true;
  const std::string text = LlmSearchText(report, 5);
  EXPECT_THAT(text, HasSubstr("own, impossible"));
  EXPECT_THAT(text, HasSubstr("plan.layout: 9 layers; hint"));
  const Json own = Json::parse(LlmSearchJson(report, 5))["own_plan"];
  EXPECT_EQ(own["pipeline_parallel"], 7);
  EXPECT_EQ(own["impossible"], "plan.layout: 9 layers; hint");
  EXPECT_FALSE(own["fits"]);
  EXPECT_FALSE(own.contains("iteration_time_s"));
}

TEST(LlmSearchText, SaysTheMemoryLimitWhereItIsLess) {
  LlmSearchReport report = MakeReport();
  EXPECT_THAT(LlmSearchText(report, 5), Not(HasSubstr("--memory-limit")));
  report.capacity_gib = 60;
  EXPECT_THAT(LlmSearchText(report, 5), HasSubstr("60.00 GiB of a GPU's 80.00 (--memory-limit)"));
  const Json json = Json::parse(LlmSearchJson(report, 5));
  EXPECT_EQ(json["memory_capacity_gib"], 80);
  EXPECT_EQ(json["memory_limit_gib"], 60);
}

// Every name that is printed is documented, and the other way round.
void Collect(const Json& json, const std::string& prefix, std::set<std::string>& names) {
  for (const auto& [name, value] : json.items()) {
    if (value.is_object() && (name == "time" || name == "open")) {
      Collect(value, name + ".", names);
    } else if (name == "plans") {
      names.insert(name);
      for (const Json& plan : value) Collect(plan, "", names);
    } else {
      names.insert(prefix + name);
    }
  }
}

TEST(LlmSearchJson, EveryNameIsDocumented) {
  LlmSearchReport report = MakeReport();
  report.open = OpenSearch{7, "that one", FromSeconds(0.5)};
  report.own.impossible = "why";
  std::set<std::string> printed, documented;
  Collect(Json::parse(LlmSearchJson(report, 5)), "", printed);
  for (const JsonField& field : LlmSearchJsonFields()) documented.insert(field.name);
  EXPECT_EQ(printed, documented);
}

}  // namespace
}  // namespace optimus::tools
