// `optimus validate published`, as a user starts it.

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_split.h"
#include "tools/cli_testing.h"
#include "tools/published_report.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

class CliPublishedTest : public CliTest {
 protected:
  Json RunJson(const std::string& arguments) {
    const Result result = Run("validate published --json " + arguments);
    EXPECT_LE(result.exit_code, 2) << result.err;
    return Json::parse(result.out);
  }
};

TEST_F(CliPublishedTest, HelpNamesFlagsAndDataSets) {
  const std::string help = Run("validate published --help").out;
  for (const char* text : {"--dataset", "--file", "--json", "zero_bubble", "nccl_busbw"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
}

TEST_F(CliPublishedTest, PrintsTheSameBytesTwiceAndTheTimeBeside) {
  for (const char* json : {"", "--json"}) {
    const std::string arguments =
        absl::StrCat("validate published --dataset=korthikanti_layer_22b ", json);
    const Result first = Run(arguments);
    const Result second = Run(arguments);
    EXPECT_EQ(first.out, second.out);
    EXPECT_THAT(first.out, Not(HasSubstr("wall")));
    EXPECT_THAT(first.err, HasSubstr("wall "));
  }
}

TEST_F(CliPublishedTest, TheSpanOfAStageIsReadOffTheSimulation) {
  const Json json = RunJson("--dataset=zero_bubble");
  const Json& result = json["results"][0];
  EXPECT_EQ(result["dataset"], "zero_bubble");
  EXPECT_EQ(result["rows"], 6);
  for (const Json& row : result["row_list"]) {
    const Json& figure = row["figures"][0];
    EXPECT_EQ(figure["quantity"], "bubble_1f1b");
    EXPECT_NEAR(figure["simulated"].get<double>(), figure["measured"].get<double>(), 5.1e-5);
  }
}

// Every name of the JSON is documented, and every documented name is there.
void Collect(const Json& json, const std::string& prefix, std::set<std::string>& names) {
  for (const auto& [name, value] : json.items()) {
    const std::string path = prefix.empty() ? name : absl::StrCat(prefix, ".", name);
    const bool list = value.is_array() && !value.empty() && value[0].is_object();
    if (list) {
      for (const Json& one : value) Collect(one, path, names);
    } else {
      names.insert(path);
    }
  }
}

TEST_F(CliPublishedTest, EveryNameOfTheJsonIsDocumented) {
  std::set<std::string> names, documented;
  Collect(RunJson("--dataset=nccl_busbw"), "", names);
  for (const JsonField& field : PublishedJsonFields()) documented.insert(field.name);
  // Said once, of the objects that repeat them.
  for (const char* field : {"figures", "mean_abs_error", "median_abs_error", "max_abs_error",
                            "max_error", "kendall_tau"}) {
    names.erase(absl::StrCat("results.parts.", field));
  }
  EXPECT_EQ(names, documented);
}

TEST_F(CliPublishedTest, RowsOfAFileInAnyOrderOfColumns) {
  Write("mine.csv",
        "time_us,bytes,gpu,collective,nodes,gpus,busbw_gb_per_s\n"
        "8193,1073741824,A100,all_reduce,1,8,\n,134217728,H100,all_reduce,1,8,383\n");
  const Json json = RunJson("--file=$W/mine.csv");
  const Json& result = json["results"][0];
  EXPECT_EQ(result["dataset"], "nccl_busbw");
  EXPECT_EQ(result["rows"], 2);
  EXPECT_EQ(result["row_list"][0]["conditions"]["gpu"], "A100");
  EXPECT_EQ(result["row_list"][0]["figures"][0]["measured"], 8193);
  EXPECT_NEAR(result["row_list"][1]["figures"][0]["measured"].get<double>(), 613.3, 0.1);
}

TEST_F(CliPublishedTest, TargetsDecideTheExitCode) {
  const std::string header = "variant,forward_ms,backward_ms\n";
  Write("good.csv", header + "sequence_parallel,7.2,11.8\n");
  Write("bad.csv", header + "sequence_parallel,14.4,11.8\n");
  const Result good = Run("validate published --file=$W/good.csv");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("met: all: largest |error|"));
  const Result bad = Run("validate published --file=$W/bad.csv");
  EXPECT_EQ(bad.exit_code, 2) << bad.err;
  EXPECT_THAT(bad.out, HasSubstr("MISSED: all: largest |error|"));
  EXPECT_THAT(bad.err, HasSubstr("targets are missed by korthikanti_layer_22b"));
}

TEST_F(CliPublishedTest, BadInputIsOneLine) {
  ExpectOneLineError("validate published --dataset=zero_bubbles",
                     {"--dataset: unknown data set 'zero_bubbles'", "zero_bubble", "nccl_busbw"});
  ExpectOneLineError("validate published --file=$W/none.csv", {"none.csv"});
  Write("columns.csv", "gpus,seconds\n8,1\n");
  ExpectOneLineError("validate published --file=$W/columns.csv",
                     {"columns.csv:1: these are the columns of no data set", "megascale"});
  ExpectOneLineError("validate published --dataset=megascale --file=$W/columns.csv",
                     {"columns.csv:1: unknown column \"seconds\"", "global_batch"});
  Write("cell.csv", "global_batch,gpus,iteration_s\n768,512,21.2\n768,many,1\n");
  ExpectOneLineError("validate published --file=$W/cell.csv",
                     {"cell.csv:3: column gpus: \"many\" is no whole number"});
  Write("plan.csv", "global_batch,gpus,iteration_s\n768,100,21.2\n");
  ExpectOneLineError("validate published --file=$W/plan.csv",
                     {"plan.csv:2: hardware.gpus: 100 is not data_parallel"});
}

}  // namespace
}  // namespace optimus::tools
