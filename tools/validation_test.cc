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
  const std::string text = ValidationText(Some());
  EXPECT_THAT(text, HasSubstr("a GEMM, always the same, timed 50 times"));
  EXPECT_THAT(text, HasSubstr("median drifts by up to 3.0 %"));
  EXPECT_THAT(text, HasSubstr("+2.0"));
  EXPECT_THAT(text, HasSubstr("-4.0"));
  EXPECT_THAT(text, HasSubstr("median 4.0 % of the steps"));
  EXPECT_THAT(text, HasSubstr("gemm fc1"));
  EXPECT_THAT(text, Not(HasSubstr("OUTSIDE")));
  EXPECT_THAT(text, Not(HasSubstr("DIFFERS")));
}

TEST(ValidationTest, TextMarksWhatIsOutside) {
  Validation v = Some();
  v.experiments[2].comparison.step_error = 0.2;
  v.ranking[0].same = false;
  const std::string text = ValidationText(v);
  EXPECT_THAT(text, HasSubstr("OUTSIDE"));
  EXPECT_THAT(text, HasSubstr("DIFFERS"));
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
