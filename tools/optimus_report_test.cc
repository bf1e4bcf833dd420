// Text and JSON of plans, from a hand-made result.

#include "tools/optimus_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/optimus_json.h"
#include "tools/optimus_text.h"
#include "tools/report_json.h"
#include "tools/report_text.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

colocate::RankedPlan MakePlan(double predicted_s) {
  colocate::RankedPlan plan;
  plan.encoders = {{2, 4}};
  plan.pipelines = {4};
  plan.splits = {{3, 3, 2, 2}};
  plan.warm_up = step::Plan::DEFERRED;
  plan.llm_step = FromSeconds(3.5);
  plan.predicted = FromSeconds(predicted_s);
  plan.coarse = FromSeconds(6);
  plan.delta_f = FromSeconds(0.25);
  plan.delta_b = plan.predicted - plan.llm_step - plan.delta_f;
  plan.coarse_efficiency = {0.5, 0.25};
  plan.fine_efficiency = {0.75, 0.625};
  plan.bounds = {FromSeconds(3.75), FromSeconds(4)};
  plan.encoder_data_parallel = FromSeconds(0.125);
  plan.memory.parameters = Bytes(std::int64_t{10} << 30);
  return plan;
}

Report MakeReport() {
  Report report;
  report.experiment = "hand_made";
  report.step = FromSeconds(4.625);
  report.interference.factors = {1.25, 1, 1.5};
  report.wall_s = 7;
  report.stages.resize(2);
  OptimusReport optimus;
  optimus.scheduler = "paper";
  optimus.encoders = {"vit"};
  optimus.llm = {3, 4, 8};
  optimus.plan.ranked = {MakePlan(4.5), MakePlan(5)};
  optimus.plan.ranked[0].judged = FromSeconds(4.5625);
  optimus.plan.dropped = {{{{1, 1}}, "GPU memory: 93.1 GiB needed"}};
  optimus.plan.planning_seconds = 0.5;
  optimus.plan.splits_evaluated = 17;
  optimus.step = {FromSeconds(4.5), FromSeconds(4.4), FromSeconds(4.425), FromSeconds(4.625)};
  report.optimus = optimus;
  return report;
}

std::vector<std::string> Keys(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  return keys;
}

TEST(OptimusReportTest, GapLeftIsTheShareOfTheWayNotGone) {
  EXPECT_DOUBLE_EQ(GapLeft(MakePlan(4.5)), 0.25);  // from 6 down to 4
  EXPECT_DOUBLE_EQ(GapLeft(MakePlan(4)), 0);
  colocate::RankedPlan at_bound = MakePlan(4);
  at_bound.coarse = at_bound.bounds.fluid;
  EXPECT_EQ(GapLeft(at_bound), 0);
}

TEST(OptimusReportTest, SplitsAreShortened) {
  EXPECT_EQ(SplitText({16}), "16");
  EXPECT_EQ(SplitText({3, 3, 2, 2}), "3*2,2*2");
  EXPECT_EQ(SplitText({1, 7}), "1,7");
  EXPECT_EQ(SplitText({1, 0, 0, 1}), "1,0*2,1");
}

TEST(OptimusReportTest, EffectsAddUpToTheDifference) {
  const StepComparison step = MakeReport().optimus->step;
  EXPECT_EQ(step.predicted + step.order() + step.contention() + step.interference(),
            step.simulated);
  EXPECT_NEAR(step.difference_percent(), 100 * 0.125 / 4.5, 1e-12);
}

TEST(OptimusTextTest, SaysWhatWasNotHiddenAndWhatMovesTheStep) {
  const std::string text = PlanText(MakeReport());
  // Lines are wrapped: words only.
  EXPECT_THAT(text, HasSubstr("not hidden  1.000 s by which the step is longer"));
  EXPECT_THAT(text, AllOf(HasSubstr("-0.100 s"), HasSubstr("+0.025 s"), HasSubstr("+0.200 s")));
  EXPECT_THAT(text, HasSubstr("(+2.78 %)"));
  EXPECT_THAT(text, HasSubstr("x1.25"));
  EXPECT_THAT(text, HasSubstr("3*2,2*2"));
  EXPECT_THAT(text, HasSubstr("deferred"));
  EXPECT_THAT(text, HasSubstr("GPU memory: 93.1 GiB needed"));
  EXPECT_THAT(text, HasSubstr("17 splits scheduled, by local search"));
  EXPECT_THAT(text, HasSubstr("gap left 25.0 %"));
}

// The text without its line breaks.
std::string Unwrapped(const std::string& text) {
  std::string out;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"))) {
    if (!word.empty()) absl::StrAppend(&out, out.empty() ? "" : " ", word);
  }
  return out;
}

TEST(OptimusTextTest, TheBoundIsThePlansOwnAndTheLeastOfAllIsBesideIt) {
  Report report = MakeReport();
  report.optimus->plan.ranked[1].bounds.fluid = FromSeconds(3.875);
  EXPECT_EQ(LeastFluidBound(report.optimus->plan), FromSeconds(3.875));
  const std::string text = Unwrapped(PlanText(report));
  EXPECT_THAT(text, AllOf(HasSubstr("fluid of this plan 4.000 s"),
                          HasSubstr("least over all plans 3.875 s")));
  const Json json = Json::parse(PlanJson(report));
  EXPECT_EQ(json["fluid_bound_s"], 4.0);
  EXPECT_EQ(json["least_fluid_bound_s"], 3.875);
}

TEST(OptimusTextTest, WhereAllWorkIsHiddenTheRestIsWaiting) {
  Report report = MakeReport();
  EXPECT_THAT(Unwrapped(PlanText(report)), HasSubstr("the rest of the extension is waiting"));
  colocate::RankedPlan& best = report.optimus->plan.ranked.front();
  best.fine_efficiency = {1, -0.5};
  const std::string text = Unwrapped(PlanText(report));
  EXPECT_THAT(text, AllOf(HasSubstr("0.0 % of the encoders' work lies outside the LLM's bubbles, "
                                    "so the step is longer by waiting"),
                          HasSubstr("Eff_time is below 0")));
  // Frozen encoders have no backward.
  best.predicted = best.llm_step + best.delta_f;
  best.delta_b = Picoseconds(0);
  EXPECT_THAT(Unwrapped(PlanText(report)),
              AllOf(HasSubstr("by waiting"), Not(HasSubstr("last gradient"))));
  best.predicted = best.llm_step;
  best.fine_efficiency.time = 1;
  EXPECT_THAT(Unwrapped(PlanText(report)),
              AllOf(Not(HasSubstr("waiting")), Not(HasSubstr("Eff_time is below"))));
}

TEST(OptimusTextTest, TheBestPlanHasItsSimulatedStepUnderPaperToo) {
  Report report = MakeReport();
  report.optimus->plan.ranked[0].judged.reset();
  report.memory =
      MemoryReport{{report.optimus->plan.ranked[0].memory}, 0, Bytes(std::int64_t{80} << 30)};
  const std::string text = PlanText(report);
  EXPECT_THAT(text, AllOf(HasSubstr("10.00  paper   4.625\n"), HasSubstr("10.00  paper       -\n"),
                          HasSubstr("of 80.00")));
}

TEST(OptimusTextTest, CoarseOfListIsOfPaper) {
  Report report = MakeReport();
  const char* words = "coarse: of the paper's scheduler on the same plan";
  EXPECT_THAT(Unwrapped(PlanText(report)), Not(HasSubstr(words)));
  report.optimus->scheduler = "list";
  EXPECT_THAT(Unwrapped(PlanText(report)), HasSubstr(words));
}

TEST(OptimusTextTest, DroppedPlansOfOneReasonAreOneRow) {
  Report report = MakeReport();
  report.optimus->plan.dropped = {{{{1, 8}}, "encoder plan PP 1 x TP 8: 18 heads"},
                                  {{{4, 2}}, "too large"},
                                  {{{2, 8}}, "encoder plan PP 2 x TP 8: 18 heads"}};
  const std::string text = PlanText(report);
  EXPECT_THAT(text, AllOf(HasSubstr("\nPP 1 x TP 8, PP 2 x TP 8  18 heads\n"),
                          HasSubstr("\nPP 4 x TP 2               too large\n")));
  EXPECT_EQ(Json::parse(PlanJson(report))["dropped"].size(), 3U);
}

TEST(OptimusTextTest, SeveralEncodersAreNamedInOrder) {
  Report report = MakeReport();
  EXPECT_THAT(Unwrapped(PlanText(report)), Not(HasSubstr("in this order")));
  OptimusReport& optimus = *report.optimus;
  optimus.encoders = {"vit", "usm"};
  for (colocate::RankedPlan& plan : optimus.plan.ranked) {
    plan.encoders = {{2, 4}, {1, 4}};
    plan.pipelines = {4, 8};
    plan.splits.push_back({2, 2});
  }
  EXPECT_THAT(Unwrapped(PlanText(report)),
              AllOf(HasSubstr("of vit + usm, in this order"), HasSubstr("fewer encoders")));
  // Which of the two was dropped alone is not known.
  const Json json = Json::parse(PlanJson(report));
  EXPECT_FALSE(json["dropped"][0]["encoders"][0].contains("encoder"));
  EXPECT_EQ(json["plans"][0]["encoders"][1]["encoder"], "usm");
}

TEST(OptimusTextTest, RowsOfAComparisonCanBeToldApart) {
  Report paper = MakeReport();
  paper.file = "folder/a.textproto";
  paper.gpus = 96;
  paper.global_batch = 24;
  Report schedule = paper;
  schedule.file = "folder/a.schedule.pb";
  schedule.global_batch = 0;  // a schedule does not say
  schedule.optimus.reset();
  const std::string text = ComparisonText({paper, schedule});
  EXPECT_THAT(text,
              AllOf(HasSubstr("hand_made (a.textproto)"), HasSubstr("hand_made (a.schedule.pb)"),
                    Not(HasSubstr("differ in GPUs"))));
  schedule.file = "other/a.textproto";
  EXPECT_THAT(ComparisonText({paper, schedule}), AllOf(HasSubstr("hand_made (folder/a.textproto)"),
                                                       HasSubstr("hand_made (other/a.textproto)")));
  Report list = paper;
  list.experiment = "other";
  list.optimus->scheduler = "list";
  list.global_batch = 48;
  EXPECT_THAT(
      ComparisonText({paper, list}),
      AllOf(HasSubstr("other, list  "), Not(HasSubstr("textproto")), HasSubstr("differ in GPUs")));
}

TEST(OptimusTextTest, TimesOfTheMachineAreOnTheLastLineOnly) {
  Report report = MakeReport();
  const std::string before = PlanText(report);
  report.wall_s = 99;
  report.peak_memory_mib = 123;
  report.optimus->plan.planning_seconds = 42;
  const std::string after = PlanText(report);
  const auto last = after.rfind('\n', after.size() - 2);
  EXPECT_EQ(before.substr(0, last), after.substr(0, last));
  EXPECT_EQ(after.substr(last + 1),
            "wall 99.000 s, of it planning 42.000 s, peak memory 123 MiB\n");
}

TEST(OptimusTextTest, ASimulationHasTheSameSection) {
  EXPECT_THAT(FullText(MakeReport()), HasSubstr("not hidden  1.000 s"));
  Report other = MakeReport();
  other.optimus.reset();
  EXPECT_THAT(FullText(other), Not(HasSubstr("not hidden")));
}

TEST(OptimusTextTest, WhyThereIsNoInterference) {
  Report report = MakeReport();
  report.interference = {{}, "--no-interference"};
  EXPECT_THAT(PlanText(report), HasSubstr("do not slow each other (--no-interference)"));
}

TEST(OptimusJsonTest, NamesOfTheContract) {
  const Json json = Json::parse(PlanJson(MakeReport()));
  EXPECT_EQ(json["predicted_iteration_time_s"], 4.5);
  EXPECT_EQ(json["simulated_iteration_time_s"], 4.625);
  EXPECT_EQ(json["work_bound_s"], 3.75);
  EXPECT_EQ(json["fluid_bound_s"], 4.0);
  EXPECT_EQ(json["eff_work"]["coarse"], 0.5);
  EXPECT_EQ(json["eff_work"]["fine"], 0.75);
  EXPECT_EQ(json["eff_time"]["coarse"], 0.25);
  EXPECT_EQ(json["eff_time"]["fine"], 0.625);
  EXPECT_EQ(json["delta_f_s"], 0.25);
  EXPECT_EQ(json["delta_b_s"], 0.75);
  EXPECT_EQ(json["planning_s"], 0.5);
  ASSERT_EQ(json["plans"].size(), 2U);
  EXPECT_EQ(json["plans"][1]["predicted_iteration_time_s"], 5.0);
  EXPECT_EQ(json["plans"][0]["judged_iteration_time_s"], 4.5625);
  EXPECT_FALSE(json["plans"][1].contains("judged_iteration_time_s"));
  const Json& encoder = json["plans"][0]["encoders"][0];
  EXPECT_THAT(Keys(encoder), ElementsAre("encoder", "data_parallel", "pipeline_parallel",
                                         "tensor_parallel", "pipelines", "split"));
  EXPECT_EQ(encoder["data_parallel"], 12);
  EXPECT_EQ(encoder["pipelines"], 4);
  EXPECT_THAT(encoder["split"], ElementsAre(3, 3, 2, 2));
  EXPECT_EQ(json["dropped"][0]["reason"], "GPU memory: 93.1 GiB needed");
  EXPECT_EQ(Json::parse(ToJson({MakeReport()}))["optimus"]["predicted_iteration_time_s"], 4.5);
}

TEST(OptimusJsonTest, EveryNameIsDocumentedInOrder) {
  Report report = MakeReport();
  report.memory = MemoryReport{{report.optimus->plan.ranked[0].memory}, 0, Bytes(1)};
  const Json json = Json::parse(PlanJson(report));
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) {
      names.push_back(key);
      continue;
    }
    for (const std::string& inner : Keys(value)) names.push_back(absl::StrCat(key, ".", inner));
  }
  std::vector<std::string> documented;
  for (const JsonField& field : PlanJsonFields()) documented.emplace_back(field.name);
  EXPECT_EQ(names, documented);
}

}  // namespace
}  // namespace optimus::tools
