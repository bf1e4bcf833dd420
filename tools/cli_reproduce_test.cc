// `optimus reproduce`, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class CliReproduceTest : public CliTest {
 protected:
  // Two small experiments by two methods each, and figures for them.
  void SetUp() override {
    CliTest::SetUp();
    Write("a.textproto", kGpt);
    Write("b.textproto", absl::StrReplaceAll(kGpt, {{"RECOMPUTE_FULL", "RECOMPUTE_NONE"}}));
    Write("experiments.csv",
          "table,title,quantities,experiment,method,file,inferred\n"
          "1,One,iteration_time_s,x,megatron,a.textproto,guessed\n"
          "2,Two,iteration_time_s speedup_over_megatron reduction_percent,x,megatron,a.textproto,\n"
          "2,,,x,balanced,b.textproto,\n");
  }
  std::string Command(const std::string& figures, const std::string& flags = "--json") {
    Write("figures.csv",
          absl::StrCat("experiment,method,quantity,value,unit,source,note\n", figures));
    return absl::StrCat("reproduce --experiments=$W/experiments.csv --figures=$W/figures.csv ",
                        flags);
  }
  Json RunJson(const std::string& arguments) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return Json::parse(result.out);
  }
  static Json Row(const Json& json, int table, const std::string& method,
                  const std::string& quantity) {
    for (const Json& row : json["tables"][table]["rows"]) {
      if (row["method"] == method && row["quantity"] == quantity) return row;
    }
    ADD_FAILURE() << method << " " << quantity << " is not in the table";
    return {};
  }
};

TEST_F(CliReproduceTest, EveryRowHasItsErrorWhereAFigureIsKnown) {
  const Json json = RunJson(Command("x,balanced,iteration_time_s,2.0,s,there,so\n"));
  EXPECT_EQ(json["runs"], 2);
  ASSERT_EQ(json["tables"].size(), 2U);
  const Json row = Row(json, 1, "balanced", "iteration_time_s");
  const double simulated = row["simulated"].get<double>();
  EXPECT_EQ(row["paper"], 2.0);
  EXPECT_DOUBLE_EQ(row["difference"].get<double>(), simulated - 2);
  EXPECT_DOUBLE_EQ(row["error_percent"].get<double>(), 100 * (simulated / 2 - 1));
  EXPECT_EQ(row["source"], "there");
  EXPECT_TRUE(row["fitted"].empty());
  const Json slow = Row(json, 1, "megatron", "iteration_time_s");
  EXPECT_FALSE(slow.contains("paper"));
  const double speed_up = slow["simulated"].get<double>() / simulated;
  EXPECT_GT(speed_up, 1);
  EXPECT_DOUBLE_EQ(Row(json, 1, "balanced", "speedup_over_megatron")["simulated"].get<double>(),
                   speed_up);
  EXPECT_NEAR(Row(json, 1, "balanced", "reduction_percent")["simulated"].get<double>(),
              100 * (1 - 1 / speed_up), 1e-9);
  EXPECT_EQ(json["tables"][0]["inferred"][0]["text"], "guessed");
}

TEST_F(CliReproduceTest, FurtherRowsNeedNoCode) {
  // A quantity that no table lists goes to the first table of its case.
  const Json json =
      RunJson(Command("x,megatron,bubble_pp_cooldown_s,0.001,s,,\n"
                      "x,megatron,hfu_percent,40,%,,\n"
                      "x,balanced,reduction_over_megatron_percent,25,%,,\n"));
  EXPECT_TRUE(Row(json, 0, "megatron", "hfu_percent").contains("error_percent"));
  EXPECT_TRUE(Row(json, 0, "megatron", "bubble_pp_cooldown_s").contains("error_percent"));
  EXPECT_TRUE(Row(json, 1, "balanced", "reduction_over_megatron_percent").contains("paper"));
  int rows = 0;
  for (const Json& table : json["tables"]) rows += static_cast<int>(table["rows"].size());
  // Step times: megatron's in both tables, balanced's; balanced's speed-up and reduction; three
  // more.
  EXPECT_EQ(rows, 3 + 2 + 3);
}

TEST_F(CliReproduceTest, OneTable) {
  const Json json = RunJson(Command("", "--json --table=2"));
  ASSERT_EQ(json["tables"].size(), 1U);
  EXPECT_EQ(json["tables"][0]["table"], 2);
  ExpectOneLineError(Command("", "--table=7"), {"--table=7", "known: 1, 2"});
  ExpectOneLineError(Command("", "--table=0"), {"--table=0", "known: 1, 2"});
}

TEST_F(CliReproduceTest, TheTextSaysTheSame) {
  const Result result = Run(Command("x,balanced,iteration_time_s,2.00,s,there,so\n", ""));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("Table 1: One"), HasSubstr("Table 2: Two"), HasSubstr("2.00"),
            HasSubstr("guessed"), HasSubstr("there: so (x balanced iteration_time_s)"),
            HasSubstr("published"), HasSubstr("(no: no constant of the profile was)"),
            HasSubstr("no published figure is entered for this table"), HasSubstr("\nwall ")));
}

TEST_F(CliReproduceTest, TheMethodChoosesTheScheduler) {
  const std::string file = "examples/17_encoder_tp_2_llm_tp_4.textproto";
  const std::string path = std::filesystem::absolute(file).string();
  Write("experiments.csv", absl::StrCat("table,title,quantities,experiment,method,file,inferred\n",
                                        "1,One,iteration_time_s eff_work_fine_percent,x,optimus,",
                                        path, ",\n", "1,,,x,optimus_list,", path, ",\n"));
  const Json json = RunJson(Command("x,optimus_list,speedup_over_optimus,1.1,x,,\n"));
  EXPECT_EQ(json["runs"], 2);
  for (const auto& [method, scheduler] :
       {std::pair("optimus", "paper"), std::pair("optimus_list", "list")}) {
    const Json run = RunJson(absl::StrCat("simulate --json --scheduler=", scheduler, " ", file));
    EXPECT_EQ(Row(json, 0, method, "iteration_time_s")["simulated"], run["iteration_time_s"]);
    EXPECT_DOUBLE_EQ(Row(json, 0, method, "eff_work_fine_percent")["simulated"].get<double>(),
                     100 * run["optimus"]["eff_work"]["fine"].get<double>());
  }
  // Here the list scheduler finds nothing better than paper's placement, and the table says so.
  ASSERT_EQ(json["tables"][0]["notes"].size(), 1U);
  EXPECT_THAT(json["tables"][0]["notes"][0].get<std::string>(),
              AllOf(HasSubstr("x, optimus_list"), HasSubstr("placed by the paper's scheduler")));
  EXPECT_GE(Row(json, 0, "optimus_list", "speedup_over_optimus")["simulated"].get<double>(), 1);
}

TEST_F(CliReproduceTest, SaysWhatThePlanWasChosenOn) {
  Write("a.textproto", absl::StrCat(kGpt, "\nassumptions: \"the earth is flat\"\n"));
  Write("experiments.csv",
        "table,title,quantities,experiment,method,file,inferred,chosen_on\n"
        "1,One,iteration_time_s mfu_percent,x,megatron,a.textproto,,iteration_time_s\n"
        "1,,,x,balanced,a.textproto,,\n");
  const std::string figures =
      "x,megatron,iteration_time_s,2.0,s,,\nx,megatron,mfu_percent,30,%,,\n"
      "x,balanced,iteration_time_s,2.0,s,,\n";
  const Json json = RunJson(Command(figures));
  EXPECT_TRUE(Row(json, 0, "megatron", "iteration_time_s")["plan_chosen_on_it"].get<bool>());
  EXPECT_FALSE(Row(json, 0, "megatron", "mfu_percent")["plan_chosen_on_it"].get<bool>());
  EXPECT_FALSE(Row(json, 0, "balanced", "iteration_time_s")["plan_chosen_on_it"].get<bool>());
  EXPECT_EQ(json["tables"][0]["assumptions"][1]["texts"][0], "the earth is flat");
  const Result text = Run(Command(figures, ""));
  EXPECT_THAT(text.out, AllOf(HasSubstr("  plan chosen on it\n"), HasSubstr("  no\n"),
                              HasSubstr("all: the earth is flat")));
}

TEST_F(CliReproduceTest, AFittedConstantIsCheckedAgainstTheProfile) {
  const std::string header = "experiment,method,quantity,value,unit,source,note,fitted\n";
  const std::string command = "reproduce --experiments=$W/experiments.csv --figures=$W/f.csv";
  Write("f.csv", header + "x,megatron,mfu_percent,30,%,,,gpu.magic\n");
  ExpectOneLineError(command, {"f.csv:2", "\"gpu.magic\" is no constant of profile"});
  Write("f.csv", header + "x,megatron,mfu_percent,30,%,,,gpu.gemm_efficiency\n");
  EXPECT_EQ(Row(RunJson(command + " --json"), 0, "megatron", "mfu_percent")["fitted"],
            Json::array({"gpu.gemm_efficiency"}));
}

TEST_F(CliReproduceTest, TheFileIsOfItsMethod) {
  Write("experiments.csv",
        "table,title,quantities,experiment,method,file,inferred\n"
        "1,One,iteration_time_s,x,megatron,a.textproto,\n"
        "1,,,x,fsdp,b.textproto,\n");
  ExpectOneLineError(Command(""), {"experiments.csv:3", "method fsdp needs plan.strategy FSDP",
                                   "b.textproto has PIPELINE"});
}

TEST_F(CliReproduceTest, BadFiguresAreOneLineWithTheirPlace) {
  ExpectOneLineError(Command("y,megatron,iteration_time_s,1,s,,\n"),
                     {"figures.csv:2", "\"y\"", "known: x"});
  ExpectOneLineError(Command("x,magic,iteration_time_s,1,s,,\n"), {"figures.csv:2", "\"magic\""});
  ExpectOneLineError(Command("x,megatron,speed,1,s,,\n"), {"figures.csv:2", "\"speed\""});
  ExpectOneLineError(Command("x,megatron,iteration_time_s,fast,s,,\n"),
                     {"figures.csv:2", "\"fast\" is no number"});
  ExpectOneLineError(Command("x,megatron,eff_work_fine_percent,85,%,,\n"),
                     {"figures.csv:2", "megatron has no eff_work_fine_percent"});
  ExpectOneLineError(Command("x,balanced,speedup_over_alpa,2,x,,\n"),
                     {"figures.csv:2", "speedup_over_alpa"});
  ExpectOneLineError(Command("x,balanced,mfu_percent,2,%,,\nx,balanced,mfu_percent,2,%,,\n"),
                     {"figures.csv:3", "already in line 2"});
  ExpectOneLineError("reproduce --figures=$W/none.csv", {"none.csv"});
  Write("experiments.csv",
        "table,title,quantities,experiment,method,file,inferred\n"
        "1,One,iteration_time_s,x,megatron,none.textproto,\n");
  ExpectOneLineError(Command(""), {"none.textproto"});
}

TEST_F(CliReproduceTest, TheFiguresOfTheProfileAreMarkedAsFitted) {
  const Json json = RunJson("reproduce --table=2 --json");
  ASSERT_EQ(json["tables"][0]["rows"].size(), 3U);
  for (const Json& row : json["tables"][0]["rows"]) {
    EXPECT_FALSE(row["fitted"].empty()) << row;
    EXPECT_LT(std::abs(row["error_percent"].get<double>()), 3) << row;
  }
}

}  // namespace
}  // namespace optimus::tools
