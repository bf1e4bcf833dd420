#include "tools/sweep/spec/axis_values.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace optimus::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> Values(const std::string& text) {
  Axis axis;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &axis));
  return AxisValues(axis, FieldPath::Parse(axis.field()).value());
}

std::string Problem(const std::string& text) {
  return std::string(Values(text).status().message());
}

TEST(AxisValuesTest, Lists) {
  EXPECT_THAT(Values("field: 'llm' values: ['gpt-11b', 'a.json']").value(),
              ElementsAre("gpt-11b", "a.json"));
  EXPECT_THAT(Values("field: 'hardware.gpus' numbers: [8, 16]").value(), ElementsAre("8", "16"));
  EXPECT_THAT(Values("field: 'hardware.oversubscription' numbers: [1.5, 2]").value(),
              ElementsAre("1.5", "2"));
  EXPECT_THAT(Values("field: 'plan.layout' values: ['BALANCED']").value(), ElementsAre("BALANCED"));
}

TEST(AxisValuesTest, Ranges) {
  EXPECT_THAT(Values("field: 'hardware.gpus' range { from: 1 to: 8 step: 3 }").value(),
              ElementsAre("1", "4", "7"));
  // 0.1 * 3 is more than 0.3 in binary: the last value still belongs to it.
  EXPECT_THAT(Values("field: 'hardware.oversubscription' range { from: 0 to: 0.3 step: 0.1 }")
                  .value()
                  .size(),
              4);
  EXPECT_THAT(Values("field: 'hardware.gpus' log_range { from: 512 to: 4096 factor: 2 }").value(),
              ElementsAre("512", "1024", "2048", "4096"));
  EXPECT_THAT(Values("field: 'hardware.gpus' log_range { from: 10 to: 1000 points: 3 }").value(),
              ElementsAre("10", "100", "1000"));
  EXPECT_EQ(Values("field: 'hardware.oversubscription' log_range { from: 1 to: 8 points: 4 }")
                .value()
                .size(),
            4);
}

TEST(AxisValuesTest, WhatIsWrongIsSaid) {
  EXPECT_THAT(Problem("field: 'hardware.gpus'"), HasSubstr("exactly one of"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' numbers: 8 values: '8'"),
              HasSubstr("exactly one of"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' numbers: 8.5"), HasSubstr("not a whole number"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' values: 'many'"), HasSubstr("not a whole number"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' values: '99999999999'"),
              HasSubstr("not a whole number"));
  EXPECT_THAT(Problem("field: 'plan.layout' values: 'EVEN'"), HasSubstr("BALANCED"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' numbers: [8, 16, 8]"), HasSubstr("8 twice"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' range { from: 8 to: 4 step: 1 }"),
              HasSubstr("from <= to"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' range { from: 1 to: 4 }"), HasSubstr("step > 0"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' range { from: 1 to: 1e9 step: 1 }"),
              HasSubstr("over 1,000,000"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' range { from: nan to: 1 step: 1 }"),
              HasSubstr("from <= to"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' log_range { from: 0 to: 8 factor: 2 }"),
              HasSubstr("0 < from"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' log_range { from: 1 to: 8 }"),
              HasSubstr("either a factor or"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' log_range { from: 1 to: 8 factor: 1 }"),
              HasSubstr("factor above 1"));
  EXPECT_THAT(Problem("field: 'hardware.gpus' log_range { from: 1 to: 2 points: 5 }"),
              HasSubstr("twice"));
}

}  // namespace
}  // namespace optimus::sweep
