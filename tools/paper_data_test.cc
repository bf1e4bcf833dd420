#include "tools/paper_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/testing_folder.h"
#include "schedule/step/step.h"
#include "tools/quantities.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kExperiments[] =
    "table,title,quantities,experiment,method,file,inferred\n"
    "2,Second,iteration_time_s,small,megatron,small.textproto,\n"
    "1,First,mfu_percent bubble_tp_s,big,megatron,sub/big.textproto,a guess\n"
    "1,,,big,optimus,sub/optimus.textproto,\n";
constexpr char kHeader[] = "experiment,method,quantity,value,unit,source,note\n";

// One for all tests of a process.
std::string Folder() {
  static const TestingFolder folder;
  return folder.path();
}

absl::StatusOr<PaperData> Load(const std::string& experiments, const std::string& figures) {
  const std::string folder = Folder();
  std::ofstream(folder + "/experiments.csv") << experiments;
  std::ofstream(folder + "/figures.csv") << figures;
  return LoadPaperData(folder + "/experiments.csv", folder + "/figures.csv");
}

std::string ErrorOf(const std::string& experiments, const std::string& figures) {
  const auto data = Load(experiments, figures);
  EXPECT_FALSE(data.ok());
  EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(data.status().message());
}

std::string FigureError(const std::string& row) {
  return ErrorOf(kExperiments, absl::StrCat(kHeader, row, "\n"));
}

TEST(PaperDataTest, TablesAreInOrderAndFilesBesideTheCsv) {
  const auto data = Load(kExperiments, absl::StrCat(kHeader, "big,Megatron-LM,mfu_percent,28.50,",
                                                    "percent,somewhere,\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->tables.size(), 2U);
  EXPECT_EQ(data->tables[0].number, 1);
  EXPECT_EQ(data->tables[0].title, "First");
  EXPECT_EQ(data->tables[0].cases.size(), 2U);
  EXPECT_EQ(data->tables[0].cases[0].inferred, "a guess");
  EXPECT_EQ(std::filesystem::path(data->tables[0].cases[0].file),
            std::filesystem::path(Folder()) / "sub/big.textproto");
  ASSERT_EQ(data->figures.size(), 1U);
  EXPECT_STREQ(data->figures[0].method->name, "megatron");
  EXPECT_EQ(data->figures[0].value, 28.5);
  EXPECT_EQ(data->figures[0].text, "28.50");
}

TEST(PaperDataTest, ABadFigureNamesItsLine) {
  EXPECT_THAT(FigureError("huge,megatron,mfu_percent,1,%,,"),
              AllOf(HasSubstr("figures.csv:2: unknown experiment \"huge\""), HasSubstr("small")));
  EXPECT_THAT(FigureError("big,deepspeed,mfu_percent,1,%,,"),
              AllOf(HasSubstr(":2: unknown method \"deepspeed\""), HasSubstr("optimus_list")));
  EXPECT_THAT(FigureError("big,balanced,mfu_percent,1,%,,"),
              HasSubstr(":2: big has no method balanced"));
  EXPECT_THAT(FigureError("big,megatron,speed,1,%,,"),
              AllOf(HasSubstr(":2: unknown quantity \"speed\""), HasSubstr("iteration_time_s")));
  EXPECT_THAT(FigureError("big,megatron,mfu_percent,1,s,,"), HasSubstr("is in %"));
  for (const char* value : {"", "x", "1.5x", "0x10", "0X1p3", "nan", "inf", "1 2"}) {
    EXPECT_THAT(FigureError(absl::StrCat("big,megatron,mfu_percent,", value, ",%,,")),
                HasSubstr(absl::StrCat(":2: value \"", value, "\" is no number")));
  }
}

TEST(PaperDataTest, ABadExperimentNamesItsLine) {
  const auto error = [](const std::string& row) {
    return ErrorOf(absl::StrCat(kExperiments, row, "\n"), kHeader);
  };
  EXPECT_THAT(error("x,T,,e,megatron,f,"), HasSubstr("experiments.csv:5: table \"x\""));
  EXPECT_THAT(error("0,T,,e,megatron,f,"), HasSubstr(":5: table \"0\""));
  EXPECT_THAT(error("3,,,e,megatron,f,"), HasSubstr("first row of table 3 has no title"));
  EXPECT_THAT(error("1,T,,e,megatron,f,"), HasSubstr("of table 1 are given again"));
  EXPECT_THAT(error("3,T,speed,e,megatron,f,"), HasSubstr("unknown quantity \"speed\""));
  EXPECT_THAT(error("1,,,e,nothing,f,"), HasSubstr("unknown method \"nothing\""));
  EXPECT_THAT(error("1,,,,megatron,f,"), HasSubstr("experiment is empty"));
  EXPECT_THAT(error("1,,,e,megatron,,"), HasSubstr("file is empty"));
  EXPECT_THAT(error("1,,,big,optimus,sub/optimus.textproto,"), HasSubstr("twice in table 1"));
  EXPECT_THAT(error("2,,,big,optimus,other.textproto,"), HasSubstr("in line 4"));
  EXPECT_THAT(error("3,T,mfu_percent hfu_percent mfu_percent,e,megatron,f,"),
              HasSubstr(":5: quantity mfu_percent is named twice"));
  EXPECT_THAT(error("3,T,speedup_over_alpa,e,megatron,f,"),
              AllOf(HasSubstr(":5: table 3 shows speedup_over_alpa"), HasSubstr("method alpa")));
}

TEST(PaperDataTest, AFigureIsGivenOnce) {
  EXPECT_THAT(FigureError("big,megatron,mfu_percent,1,%,,\nbig,optimus,mfu_percent,1,%,,\n"
                          "big,Megatron-LM,mfu_percent,2,%,,"),
              HasSubstr(":4: mfu_percent of big by megatron is already in line 2"));
  EXPECT_THAT(FigureError("big,optimus,speedup_over_alpa,1,x,,"),
              HasSubstr(":2: speedup_over_alpa: big has no method alpa"));
}

TEST(PaperDataTest, WhatWasChosenOnAFigure) {
  const std::string figures =
      "experiment,method,quantity,value,unit,source,note,fitted\n"
      "big,megatron,mfu_percent,1,%,,,gpu.gemm_efficiency nic.x\n"
      "big,megatron,hfu_percent,1,%,,,\nbig,optimus,mfu_percent,1,%,,,\n";
  const std::string header = "table,title,quantities,experiment,method,file,inferred,chosen_on\n";
  // The second table's row of the same case says it.
  const auto data = Load(header + "1,First,,big,megatron,a,,\n1,,,big,optimus,b,,hfu_percent\n" +
                             "2,Second,,big,megatron,a,,memory_gib mfu_percent\n",
                         figures);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(data->PlanWasChosenOn(data->figures[0]));
  EXPECT_FALSE(data->PlanWasChosenOn(data->figures[1]));
  EXPECT_FALSE(data->PlanWasChosenOn(data->figures[2]));
  EXPECT_THAT(data->figures[0].fitted, ::testing::ElementsAre("gpu.gemm_efficiency", "nic.x"));
  EXPECT_THAT(data->figures[1].fitted, ::testing::IsEmpty());
  EXPECT_THAT(ErrorOf(header + "1,First,,big,megatron,a,,speed\n", figures),
              HasSubstr(":2: unknown quantity \"speed\""));
}

TEST(QuantitiesTest, NamesWithAMethod) {
  EXPECT_EQ(ReferenceMethod("speedup_over_balanced"), "balanced");
  EXPECT_EQ(ReferenceMethod("reduction_percent"), "megatron");
  EXPECT_EQ(ReferenceMethod("reduction_over_optimus_list_percent"), "optimus_list");
  EXPECT_EQ(ReferenceMethod("iteration_time_s"), "");
  EXPECT_FALSE(IsQuantity("speedup_over_nothing"));
  EXPECT_FALSE(IsQuantity("reduction_over_megatron"));
  EXPECT_EQ(UnitOf("speedup_over_alpa"), "x");
  EXPECT_EQ(UnitOf("reduction_percent"), "%");
  EXPECT_EQ(UnitOf("bubble_dp_all_gather_s"), "s");
}

// A hand-made run: 2 s against 3 s.
TEST(QuantitiesTest, SpeedUpAndReductionSayTheSame) {
  PaperRun slow, fast;
  slow.report.step = FromSeconds(3);
  fast.report.step = FromSeconds(2);
  EXPECT_DOUBLE_EQ(*Evaluate("speedup_over_megatron", fast, &slow), 1.5);
  EXPECT_DOUBLE_EQ(*Evaluate("reduction_percent", fast, &slow), 100.0 / 3);
  EXPECT_DOUBLE_EQ(*Evaluate("iteration_time_s", fast, nullptr), 2);
  EXPECT_FALSE(Evaluate("speedup_over_megatron", fast, nullptr));
  EXPECT_FALSE(Evaluate("eff_work_fine_percent", fast, nullptr));
  EXPECT_FALSE(Evaluate("mfu_percent", fast, nullptr));
  EXPECT_FALSE(Evaluate("memory_gib", fast, nullptr));
  EXPECT_FALSE(Evaluate("llm_collective_us", fast, nullptr));
}

TEST(QuantitiesTest, SharesOfBubblesAreOfTheStep) {
  PaperRun run;
  run.report.step = FromSeconds(4);
  run.report.average.bubbles_s[static_cast<int>(ir::BubbleClass::kTp)] = 1;
  run.report.average.bubbles_s[static_cast<int>(ir::BubbleClass::kPpWarmup)] = 0.5;
  EXPECT_DOUBLE_EQ(*Evaluate("bubble_tp_percent", run, nullptr), 25);
  EXPECT_DOUBLE_EQ(*Evaluate("bubble_pp_warmup_s", run, nullptr), 0.5);
  EXPECT_DOUBLE_EQ(*Evaluate("bubble_total_percent", run, nullptr), 37.5);
}

// The files of the repository: every experiment can be read, and is of the method's strategy.
TEST(PaperDataTest, TheRepositorysTables) {
  const auto data =
      LoadPaperData("examples/paper/experiments.csv", "examples/paper/paper_figures.csv");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->tables.size(), 8U);
  std::set<std::string> methods_of_strong_3072;
  for (const PaperTable& table : data->tables) {
    for (const PaperCase& entry : table.cases) {
      const auto experiment = step::LoadExperiment(entry.file);
      ASSERT_TRUE(experiment.ok()) << experiment.status();
      EXPECT_EQ(experiment->plan().strategy(), entry.method->strategy) << entry.file;
      if (entry.experiment == "strong_3072") methods_of_strong_3072.insert(entry.method->name);
    }
  }
  EXPECT_THAT(methods_of_strong_3072,
              ::testing::ElementsAre("balanced", "megatron", "optimus", "optimus_list"));
}

}  // namespace
}  // namespace optimus::tools
