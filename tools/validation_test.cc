#include "tools/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tools/validation_json.h"
#include "tools/validation_text.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

ValidatedExperiment Experiment(const std::string& name, double error) {
  ValidatedExperiment e;
  e.name = name;
  e.file = name + ".textproto";
  e.strategy = "OPTIMUS";
  e.measured = {0.19, 0.198, 0.2, 0.204, 0.25};
  e.steps = 30;
  e.comparison.measured_step = FromSeconds(0.2);
  e.comparison.simulated_step = FromSeconds(0.2 * (1 + error));
  e.comparison.step_error = error;
  e.comparison.shares = {{"compute", 0.15, 0.16, -0.05}};
  e.comparison.work = {{"gemm fc1", 16, 0.05, 0.04}};
  return e;
}

Validation Some() {
  Validation v;
  v.backend = "cpu";
  v.device = "one core";
  v.hosts = "here (2 ranks)";
  v.simulator = "SimGrid";
  v.profile = "measured";
  v.profile_hash = "0123";
  v.rounds = 6;
  v.warm_up = 3;
  v.tolerance = 0.1;
  v.least_difference = 0.05;
  v.experiments = {Experiment("a", 0.02), Experiment("b", -0.04), Experiment("c", 0.09)};
  v.noise = {"a GEMM", {0.001, 0.001, 0.00102, 0.00103, 0.002}, 50, 0.03};
  v.ranking = {{"a", "b", 1.2, 1.1, true}};
  return v;
}

TEST(ValidationTest, WithinMeansEveryStepAndEveryOrder) {
  EXPECT_TRUE(Some().within());
  Validation far = Some();
  far.experiments[1].comparison.step_error = -0.11;
  EXPECT_FALSE(far.within());
  Validation swapped = Some();
  swapped.ranking[0].same = false;
  EXPECT_FALSE(swapped.within());
}

TEST(ValidationTest, WhatIsNoNumberIsOutside) {
  Validation v = Some();
  v.experiments[0].comparison.step_error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(v.within());
}

TEST(ValidationTest, MedianErrorIsOfMagnitudes) { EXPECT_DOUBLE_EQ(Some().MedianError(), 0.04); }

TEST(ValidationTest, TextHasErrorsBesideTheNoise) {
  const std::string text = ValidationText(Some(), /*all_work=*/false);
  EXPECT_THAT(text, HasSubstr("a GEMM, always the same, timed 50 times"));
  EXPECT_THAT(text, HasSubstr("median drifts by up to 3.0 %"));
  EXPECT_THAT(text, HasSubstr("+2.0"));
  EXPECT_THAT(text, HasSubstr("-4.0"));
  EXPECT_THAT(text, HasSubstr("median of the steps' errors 4.0 %, largest +9.0 % (c)"));
  EXPECT_THAT(text, HasSubstr("gemm fc1"));
  EXPECT_THAT(text, HasSubstr("machine  verdict\n"));
  EXPECT_THAT(text, HasSubstr("within\n"));
  EXPECT_THAT(text, HasSubstr("same\n"));
  EXPECT_THAT(text, Not(HasSubstr("OUTSIDE")));
  EXPECT_THAT(text, Not(HasSubstr("DIFFERENT")));
  EXPECT_THAT(text, Not(HasSubstr("NOTHING FOLLOWS")));
  EXPECT_THAT(text, Not(HasSubstr("left out")));
}

TEST(ValidationTest, PairsThatWereLeftOutAreCounted) {
  Validation v = Some();
  v.close_pairs = 2;
  EXPECT_THAT(ValidationText(v, false),
              HasSubstr("\n2 pairs that train the same are closer than 5 % and left out\n"));
  EXPECT_EQ(Json::parse(ValidationJson(v))["close_pairs"], 2);
  v.ranking.clear();
  v.close_pairs = 1;
  const std::string text = ValidationText(v, false);
  EXPECT_THAT(text, HasSubstr("\n1 pair that trains the same is closer than 5 % and left out\n"));
  EXPECT_THAT(text, Not(HasSubstr("measured faster")));
}

// Errors and verdicts stay, and so does the exit code; the last word is that they mean nothing.
TEST(ValidationTest, NothingFollowsWhereTheNoiseIsAboveTheTolerance) {
  Validation v = Some();
  EXPECT_TRUE(v.conclusive());
  v.noise.time.third_quartile = 0.00113;  // 12.7 % above the first
  EXPECT_FALSE(v.conclusive());
  EXPECT_TRUE(v.within());
  EXPECT_THAT(ValidationText(v, false),
              HasSubstr("NOTHING FOLLOWS from these errors, within or outside: the machine's own "
                        "noise is 12.7 %, the\ntolerance 10 %"));
  const Json json = Json::parse(ValidationJson(v));
  EXPECT_EQ(json["conclusive"], false);
  EXPECT_EQ(json["within_tolerance"], true);
  // The drift is shown, but is no verdict: it is the most of many visits.
  v = Some();
  v.noise.drift = 5;
  EXPECT_TRUE(v.conclusive());
  // Emulated ranks have no noise of their own.
  v.noise = MachineNoise();
  v.tolerance = 0;
  EXPECT_TRUE(v.conclusive());
}

TEST(ValidationTest, NothingFollowsWhereEmulatedRanksWereLate) {
  Validation v = Some();
  v.noise = MachineNoise();
  Emulation emulation;
  emulation.step_s = emulation.measured_step_s = 0.2;
  v.experiments[1].emulation = emulation;
  EXPECT_TRUE(v.conclusive());
  EXPECT_EQ(Json::parse(ValidationJson(v))["experiments"][1]["kept_time"], true);
  emulation.late_s = 0.05;
  v.experiments[1].emulation = emulation;
  EXPECT_FALSE(v.conclusive());
  const std::string text = ValidationText(v, false);
  EXPECT_THAT(text, HasSubstr("late        b: emulated operations ended up to 50.000 ms after"));
  EXPECT_THAT(text, HasSubstr("NOTHING FOLLOWS from these errors, within or outside: emulated"));
  const Json json = Json::parse(ValidationJson(v))["experiments"];
  EXPECT_EQ(json[1]["late_s"], 0.05);
  EXPECT_EQ(json[1]["kept_time"], false);
  EXPECT_GT(json[1]["better_time_scale"], 1);
  EXPECT_FALSE(json[0].contains("late_s"));
}

TEST(ValidationTest, TheLargestErrorIsNamedWithItsSign) {
  Validation v = Some();
  v.experiments[1].comparison.step_error = -0.095;
  EXPECT_EQ(v.Worst(), &v.experiments[1]);
  const Json json = Json::parse(ValidationJson(v));
  EXPECT_EQ(json["largest_error"], -0.095);
  EXPECT_EQ(json["largest_error_experiment"], "b");
  v.experiments[0].comparison.step_error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(v.Worst(), &v.experiments[0]);  // no number is worse than any
  EXPECT_EQ(Validation().Worst(), nullptr);
}

TEST(ValidationTest, WorkBeyondTheLongestIsCountedWithItsErrors) {
  validation::Comparison comparison = Experiment("a", 0.02).comparison;
  comparison.work.clear();
  for (int i = 0; i < 14; ++i) {
    const double simulated_s = i == 12 ? 0.0005 : i == 13 ? 0.0012 : 0.01;
    comparison.work.push_back({absl::StrCat("gemm ", i), 1, simulated_s, i < 12 ? 0.01 : 0.001});
  }
  const std::string some = ComparisonText(comparison, 0.1, /*all_work=*/false);
  EXPECT_THAT(some, HasSubstr("gemm 11 "));
  EXPECT_THAT(some, HasSubstr("... and 2 shorter ones, off by -50.0 % (gemm 12) to +20.0 % (gemm "
                              "13): --all-work shows all\n"));
  const std::string all = ComparisonText(comparison, 0.1, /*all_work=*/true);
  EXPECT_THAT(all, HasSubstr("\ngemm 13 "));
  EXPECT_THAT(all, Not(HasSubstr("shorter ones")));
}

TEST(ValidationTest, ColumnsAreExplainedBelowTheTables) {
  validation::Comparison comparison = Experiment("a", 0.02).comparison;
  comparison.simulated_runner = "simgrid";
  comparison.measured_runner = "cpu";
  const std::string kernels = ComparisonText(comparison, 0.1, false);
  EXPECT_THAT(kernels, HasSubstr("runners     simulated by simgrid, measured by cpu\n"));
  EXPECT_THAT(kernels, HasSubstr("\nerror of the step: (simulated - measured) of that part / "));
  EXPECT_THAT(kernels, HasSubstr("\nerror of work: simulated / measured - 1"));
  EXPECT_THAT(kernels, Not(HasSubstr("CPU cores")));
  comparison.work.push_back({"send activations", 4, 0.001, 0.002, /*transfer=*/true});
  EXPECT_THAT(ComparisonText(comparison, 0.1, false),
              HasSubstr("\ntransfers beside computing on CPU cores are simulated too short"));
  comparison.measured_runner = "cuda";
  EXPECT_THAT(ComparisonText(comparison, 0.1, false), Not(HasSubstr("CPU cores")));
  comparison.work.clear();
  EXPECT_THAT(ComparisonText(comparison, 0.1, false), Not(HasSubstr("error of work")));
}

TEST(ValidationTest, WhatIsOutsideIsOneLine) {
  Validation v = Some();
  v.experiments[1].comparison.step_error = -0.11;
  v.ranking[0].same = false;
  EXPECT_EQ(OutsideText(v),
            "b: the error of the step is -11.0 %, the tolerance 10 %; a is faster than b as "
            "measured, not as simulated");
  v.noise.time.third_quartile = 1;
  EXPECT_THAT(OutsideText(v), HasSubstr("; but nothing follows from that, see the report"));
  EXPECT_EQ(OutsideText(v.experiments[1].comparison, 0.1),
            "the error of the step is -11.0 %, the tolerance 10 %");
}

TEST(ValidationTest, TextMarksWhatIsOutside) {
  Validation v = Some();
  v.experiments[2].comparison.step_error = 0.2;
  v.ranking[0].same = false;
  const std::string text = ValidationText(v, /*all_work=*/false);
  EXPECT_THAT(text, HasSubstr("OUTSIDE"));
  EXPECT_THAT(text, HasSubstr("DIFFERENT"));
}

TEST(ValidationTest, NothingFollowsWhereTheNoiseExceedsTheTolerance) {
  Validation v = Some();
  EXPECT_TRUE(v.conclusive());
  EXPECT_THAT(ValidationText(v, false), Not(HasSubstr("NOTHING FOLLOWS")));
  v.noise.time = {0.001, 0.001, 0.002, 0.0023, 0.003};  // 65 % between the quartiles
  EXPECT_FALSE(v.conclusive());
  EXPECT_THAT(ValidationText(v, false), HasSubstr("NOTHING FOLLOWS"));
}

TEST(ValidationTest, AllWorkIsShownOnRequest) {
  Validation v = Some();
  v.experiments.resize(1);
  std::vector<validation::WorkComparison>& work = v.experiments[0].comparison.work;
  for (int i = 0; i < 40; ++i) work.push_back({absl::StrCat("gemm n", i), 1, 0.001, 0.001});
  EXPECT_THAT(ValidationText(v, false), Not(HasSubstr("\ngemm n39 ")));
  EXPECT_THAT(ValidationText(v, true), HasSubstr("\ngemm n39 "));
}

TEST(ValidationTest, EveryNameOfTheJsonIsDocumented) {
  const Json json = Json::parse(ValidationJson(Some()));
  std::vector<std::string> documented;
  for (const JsonField& field : ValidationJsonFields()) documented.emplace_back(field.name);
  for (const auto& [name, value] : json.items()) {
    if (!value.is_object()) {
      EXPECT_THAT(documented, ::testing::Contains(name));
      continue;
    }
    for (const auto& [inner, unused] : value.items()) {
      EXPECT_THAT(documented, ::testing::Contains(absl::StrCat(name, ".", inner)));
    }
  }
  const Json comparison = Json::parse(ComparisonJson(Experiment("a", 0.02).comparison, 0.1));
  documented.clear();
  for (const JsonField& field : ComparisonJsonFields()) documented.emplace_back(field.name);
  for (const auto& [name, value] : comparison.items()) {
    EXPECT_THAT(documented, ::testing::Contains(name));
  }
}

TEST(ValidationTest, JsonOfAnInfiniteErrorIsStillJson) {
  validation::Comparison comparison;
  comparison.step_error = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Json::parse(ComparisonJson(comparison, 0.1))["step_error"].is_null());
}

}  // namespace
}  // namespace optimus::tools
