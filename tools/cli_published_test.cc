// `optimus validate published`, as a user starts it.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

// F = B = W, messages that take no time, 4 stages, 8 micro-batches: 9 of 33, and 3 of 27.
TEST_F(CliPublishedTest, TheTextbookRowOfZeroBubble) {
  Write("own.csv",
        "params_b,layers,hidden,pp,micro_batch,micro_batches,f_ms,b_ms,w_ms,comm_ms,bubble_1f1b,"
        "bubble_1f1b_interleaved,interleave,bubble_zb_h1,bubble_zb_h2,bubble_zb_2p\n"
        "1,4,1024,4,1,8,1,1,1,0,0.27273,,,0.11111,,\n");
  const Json json = RunJson("--file=$W/own.csv");
  for (const Json& figure : json["results"][0]["row_list"][0]["figures"]) {
    EXPECT_NEAR(figure["error"], 0, 1e-5) << figure;
  }
  EXPECT_EQ(json["results"][0]["row_list"][0]["figures"].size(), 2);
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
                     {"columns.csv:1: these are the columns of no data set; nearest is ",
                      "missing: ", "say by --dataset if it is another", "nccl_busbw"});
  ExpectOneLineError("validate published --dataset=megascale --file=$W/columns.csv",
                     {"columns.csv:1: unknown column \"seconds\"", "global_batch"});
  Write("cell.csv", "global_batch,gpus,iteration_s\n768,512,21.2\n768,many,1\n");
  ExpectOneLineError("validate published --file=$W/cell.csv",
                     {"cell.csv:3: column gpus: \"many\" is no whole number"});
  Write("plan.csv", "global_batch,gpus,iteration_s\n768,100,21.2\n");
  ExpectOneLineError("validate published --file=$W/plan.csv",
                     {"plan.csv:2: column gpus: 100 are not a multiple of tp * pp = 8 * 8"});
}

constexpr char kLayer[] = "variant,forward_ms,backward_ms\n";
constexpr char kModels[] = "params_b,heads,hidden,layers,tp,pp,gpus,global_batch,tflops_per_gpu\n";

TEST_F(CliPublishedTest, FilesThatHoldNoTable) {
  const auto expect = [&](const std::string& content, const std::string& text) {
    Write("x.csv", content);
    ExpectOneLineError("validate published --file=$W/x.csv", {"x.csv", text});
  };
  expect("", ": is empty");
  expect("# nothing\n\n", ": has no header");
  expect(kLayer, ": has no row below its header");
  expect(absl::StrCat(kLayer, "baseline,7.7\n"), ":2: has 2 fields, expected 3");
  expect(absl::StrCat(kLayer, "baseline,7.7,1,2\n"), ":2: has 4 fields, expected 3");
  expect("variant,forward_ms,forward_ms\nbaseline,1,2\n",
         ":1: column \"forward_ms\" is there twice");
  expect(absl::StrCat(kLayer, "\"base\nline\",1,2\n"), ":2: a quote does not end on its line");
  expect(std::string({'\xFF', '\xFE', 'v', '\0', 'a', '\0'}), "is UTF-16 text");
  std::filesystem::create_directory(Work() + "/folder.csv");
  ExpectOneLineError("validate published --file=$W/folder.csv", {"folder.csv: is a directory"});
}

// As spreadsheets save them, and from a pipe.
TEST_F(CliPublishedTest, EveryFormOfATableIsRead) {
  const auto values = [&](const std::string& content, const std::string& file) {
    Write("x.csv", content);
    const Result result =
        Run(absl::StrCat("validate published --json --file=", file), "", "cat $W/x.csv | ");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json rows = Json::parse(result.out)["results"][0]["row_list"];
    for (Json& row : rows) row.erase("line");
    return rows;
  };
  const std::string plain = absl::StrCat(kLayer, "baseline,7.7,11.9\n");
  const Json expected = values(plain, "$W/x.csv");
  EXPECT_EQ(expected[0]["figures"][0]["measured"], 7.7);
  EXPECT_EQ(values(plain, "/dev/stdin"), expected);
  EXPECT_EQ(values(absl::StrCat("\xEF\xBB\xBF", kLayer, "\r\nbaseline,7.7,11.9\r\n"), "$W/x.csv"),
            expected);
  EXPECT_EQ(values("\"variant\",\"backward_ms\",\"forward_ms\"\n\"baseline\",\"11.9\",\"7.7\"\n",
                   "$W/x.csv"),
            expected);
}

TEST_F(CliPublishedTest, ARowThatNoPlanFits) {
  const auto expect = [&](const std::string& row, const std::string& text) {
    Write("x.csv", absl::StrCat(kModels, "1.7,24,2304,24,1,1,32,512,137\n", row, "\n"));
    ExpectOneLineError("validate published --dataset=megatron_sc21 --file=$W/x.csv",
                       {absl::StrCat("x.csv:3: ", text)});
  };
  expect("1.7,23,2304,24,1,1,32,512,137", "column heads: 23 do not divide hidden 2304");
  expect("1.7,24,2304,24,16,1,32,512,137", "column tp: 16 does not divide 24 heads");
  expect("1.7,24,2304,24,1,5,40,512,137", "column pp: 5 does not divide 24 layers");
  expect("1.7,24,2304,24,8,8,32,512,137", "column gpus: 32 are not a multiple of tp * pp");
  expect("1.7,24,2304,24,1,1,32,500,137", "column global_batch: 500 is not a multiple of dp = 32");
  expect("1.7,24,2304,24,1,1,-32,512,137", "column gpus: \"-32\" is no whole number");
  expect("1.7,24,2304,24,1,1,32,512,nan", "column tflops_per_gpu: \"nan\" is no number from");
  expect("1.7,24,2304,24,1,1,32,512,1e-300", "column tflops_per_gpu: ");
  expect("1000,24,230400,24,1,1,32,512,137", "no micro-batch size that divides the 16 samples");
}

TEST_F(CliPublishedTest, TwoDataSetsOfTheSameColumns) {
  const std::string row = absl::StrCat(kModels, "1.7,24,2304,24,1,1,32,512,137\n");
  Write("x.csv", row);
  ExpectOneLineError("validate published --file=$W/x.csv",
                     {"x.csv:1: these are the columns of megatron_sc21 and megatron_core_h100; say "
                      "which by --dataset, or in the file's name"});
  EXPECT_EQ(RunJson("--dataset=megatron_core_h100 --file=$W/x.csv")["results"][0]["dataset"],
            "megatron_core_h100");
  Write("more_megatron_sc21.csv", row);
  EXPECT_EQ(RunJson("--file=$W/more_megatron_sc21.csv")["results"][0]["dataset"], "megatron_sc21");
  // What is asked for goes before what the name says.
  EXPECT_EQ(
      RunJson(
          "--dataset=megatron_core_h100 --file=$W/more_megatron_sc21.csv")["results"][0]["dataset"],
      "megatron_core_h100");
}

// Of one row there is no order, and the report does not make one up.
TEST_F(CliPublishedTest, OneRowHasNoRankCorrelation) {
  Write("x.csv", "global_batch,gpus,iteration_s\n768,512,21.2\n");
  const Json result = RunJson("--file=$W/x.csv")["results"][0];
  EXPECT_TRUE(result["kendall_tau"].is_null());
  EXPECT_FALSE(result["mean_abs_error"].is_null());
}

// Processes that have `word` among their arguments.
std::vector<pid_t> ProcessesOf(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::string line;  // nothing where the process has just ended
    std::getline(file, line);
    if (absl::StrContains(line, word)) found.push_back(pid);
  }
  return found;
}

// Starts the command with standard output in a file; the signals are those of a terminal's command.
pid_t Start(const std::vector<std::string>& words, const std::string& out) {
  const pid_t child = fork();
  if (child != 0) return child;
  for (const int signal_number : {SIGINT, SIGTERM}) signal(signal_number, SIG_DFL);
  if (freopen(out.c_str(), "w", stdout) == nullptr) _exit(1);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments.front(), arguments.data());
  _exit(1);
}

// The simulation runs in a process of its own: it ends with the command, however that ends. Long
// enough to be met in the middle: 20 simulated steps of many micro-batches.
TEST_F(CliPublishedTest, AnInterruptLeavesNoProcessAndNoOutput) {
  std::string rows = kModels;
  for (int row = 0; row < 20; ++row) rows += "1.7,24,2304,24,1,1,1,5000,137\n";
  const std::string file = Write("long.csv", rows);
  for (const int signal_number : {SIGINT, SIGTERM}) {
    const pid_t command = Start({OPTIMUS_BINARY, "validate", "published", "--json",
                                 "--dataset=megatron_sc21", "--file=" + file},
                                Work() + "/out");
    ASSERT_GT(command, 0);
    while (ProcessesOf(file).size() < 2 && waitpid(command, nullptr, WNOHANG) == 0) {
      usleep(1000);
    }
    ASSERT_EQ(kill(command, signal_number), 0);
    int status = 0;
    ASSERT_EQ(waitpid(command, &status, 0), command);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal_number) << status;
    while (!ProcessesOf(file).empty()) usleep(1000);  // the test's own time limit ends this
    EXPECT_EQ(ReadFile(Work() + "/out").value_or(""), "");
    EXPECT_THAT(Files(), ::testing::ElementsAre("long.csv", "out"));
  }
}

}  // namespace
}  // namespace optimus::tools
