// Runs the built command as a user does and looks at what comes out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "tools/cli_testing.h"
#include "traces/perfetto_subset.pb.h"

namespace optimus::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

TEST_F(CliTest, Version) {
  const Result result = Run("--version");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, absl::StrCat("optimus ", OPTIMUS_VERSION, "\n"));
}

TEST_F(CliTest, HelpNamesEveryFlag) {
  const Result result = Run("simulate --help");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--fidelity", "--json", "--trace", "--out", "--require-fit",
                           "--schedule", "--profile", "--timeline", "FILE"}) {
    EXPECT_THAT(result.out, HasSubstr(flag));
  }
  EXPECT_THAT(Run("--help").out, HasSubstr("simulate"));
}

TEST_F(CliTest, WrongUseIsOneLineWithAHint) {
  for (const char* arguments :
       {"simulate", "simulate --unknown-flag x", "simulate --trace", "plan", "plan a b",
        "plan x --schedule", "reproduce --table=x", "reproduce --table", "replay"}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_THAT(result.err, StartsWith("optimus: error: "));
    EXPECT_THAT(result.err, HasSubstr("--help)"));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_THAT(Run("simulate --unknown-flag x").err,
              AllOf(HasSubstr("--unknown-flag"), HasSubstr("see optimus simulate --help")));
  EXPECT_THAT(Run("simulate --unknown-flag").err, HasSubstr("unknown flag --unknown-flag"));
  EXPECT_THAT(Run("").err, HasSubstr("no command given (see optimus --help)"));
}

TEST_F(CliTest, BadFiles) {
  ExpectBadInput("$W/none.textproto", {"none.textproto", "No such file"});
  ExpectBadInput("$W", {Work(), "is a directory"});
  Write("broken.textproto", "name: \"x\"\nplan { nonsense: 1 }\n");
  ExpectBadInput("$W/broken.textproto", {"broken.textproto:2:", "nonsense"});
  Write("empty.textproto", "");
  ExpectBadInput("$W/empty.textproto", {"empty.textproto", "is empty"});
  Write("bad.schedule.pb", "not a proto");
  ExpectBadInput("$W/bad.schedule.pb --profile=h100-80gb", {"bad.schedule.pb"});
  ExpectBadInput("$W/bad.schedule.pb", {"bad.schedule.pb", "--profile=NAME"});
  ExpectBadInput("''", {"FILE", "is empty"});
  ExpectBadInput("/dev/zero", {"/dev/zero", "device or pipe"});
  Write("bytes.textproto", absl::StrReplaceAll(kGpt, {{"small", "\\xff"}}));
  ExpectBadInput("$W/bytes.textproto", {"bytes.textproto: name: ", "UTF-8"});
}

TEST_F(CliTest, BadExperiments) {
  struct Case {
    const char *from, *to;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases = {
      {"gpt-11b", "gpt-9000", {"llm", "gpt-9000", "gpt-175b"}},
      {"h100-80gb", "h900", {"hardware.profile", "h900", "h100-80gb"}},
      {"gpus: 16", "gpus: 17", {"hardware.gpus", "17", "2 * 2 * 4"}},
      {"gpus: 16", "gpus: 16 cluster_gpus: 8", {"hardware.cluster_gpus", "16", "8"}},
      {"pipeline_parallel: 2\n  tensor_parallel: 4",
       "pipeline_parallel: 3\n  tensor_parallel: 4",
       {"hardware.gpus", "2 * 3 * 4"}},
      {"schedule: ONE_F_ONE_B",
       "schedule: INTERLEAVED model_chunks: 3",
       {"layout", "80 layers", "allow_uneven"}},
      {"global_batch: 8", "global_batch: 0", {"batch.global_batch", "0"}},
      {"global_batch: 8", "global_batch: 7", {"batch.global_batch", "7"}},
      {"micro_batch: 1", "micro_batch: -1", {"batch.micro_batch", "-1"}},
      {"sequence_length: 2048", "sequence_length: 0", {"batch.sequence_length", "0"}},
      {"data_parallel: 2", "data_parallel: -2", {"plan.data_parallel", "-2"}},
      {"schedule: ONE_F_ONE_B", "", {"plan.schedule", "ONE_F_ONE_B"}},
      {"layout: EQUAL_LAYERS", "layout: EXPLICIT layout_string: \"Et*80|x\"", {"layout"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.from, " -> ", c.to));
    WriteChanged(c.from, c.to);
    std::vector<std::string> words = c.words;
    words.emplace_back("e.textproto");
    ExpectBadInput("$W/e.textproto", words);
  }
}

TEST_F(CliTest, BadFlagValues) {
  Write("e.textproto", kGpt);
  ExpectBadInput("$W/e.textproto --fidelity=exact",
                 {"--fidelity=exact", "auto", "folded", "group", "gpu"});
  for (const char* flag : {"--trace", "--schedule", "--profile", "--timeline"}) {
    ExpectBadInput(absl::StrCat("$W/e.textproto ", flag, "=''"), {flag});
  }
  ExpectBadInput("$W/e.textproto --profile=h900", {"--profile: unknown", "h900", "h100-80gb"});
  ExpectBadInput("$W/e.textproto --timeline=$W/t.pb", {"--timeline", ".timeline.textproto"});
  ExpectBadInput("$W/e.textproto --timeline=$W/none/t.timeline.pb", {"--timeline", "none"});
  ExpectBadInput("$W/e.textproto $W/e.textproto --timeline=$W/t.timeline.pb",
                 {"--timeline", "one at a time"});
  ExpectBadInput("$W/e.textproto --trace=$W/none/t.pftrace", {"--trace", "none"});
  ExpectBadInput("$W/e.textproto --trace=$W", {"--trace", "is a folder"});
  ExpectBadInput("$W/e.textproto $W/e.textproto --trace=$W/t.pftrace", {"--trace", "--out=DIR"});
  ExpectBadInput("$W/e.textproto $W/e.textproto", {"--out", "two experiments are named small"});
}

TEST_F(CliTest, AScheduleIsOnlyWrittenWhereItCanBeReadAgain) {
  Write("e.textproto", kGpt);
  for (const char* name : {"x.textproto", "x.pb", "foo.bar"}) {
    ExpectBadInput(absl::StrCat("$W/e.textproto --schedule=$W/", name),
                   {"--schedule", name, ".schedule.pb or .schedule.textproto"});
  }
}

TEST_F(CliTest, NoOutputOverwritesAnInputOrAnother) {
  Write("e.textproto", kGpt);
  ExpectBadInput("$W/e.textproto --trace=$W/./e.textproto", {"--trace", "FILE", "overwrite"});
  ASSERT_EQ(Run("simulate $W/e.textproto --schedule=$W/s.schedule.textproto").exit_code, 0);
  fs::create_symlink("s.schedule.textproto", Work() + "/link.schedule.pb");
  ExpectBadInput("$W/s.schedule.textproto --profile=h100-80gb --schedule=$W/link.schedule.pb",
                 {"--schedule", "FILE", "overwrite"});
  ExpectBadInput("$W/e.textproto --trace=$W/x.schedule.pb --schedule=$W/x.schedule.pb",
                 {"--trace", "--schedule", "both write"});
  fs::create_directory(Work() + "/old");
  const Result result = Run("simulate $W/e.textproto --out=$W/old --trace=$W/old/small.table.txt");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("--out"), HasSubstr("--trace"), HasSubstr("both write")));
  EXPECT_TRUE(fs::is_empty(Work() + "/old"));
  // Files that the experiment names are inputs, too.
  fs::copy(fs::path(DataDir()) / "hw_profiles/zoo/h100-80gb.textproto", Work() + "/p.textproto");
  WriteChanged("h100-80gb", "p.textproto");
  ExpectBadInput("$W/e.textproto --trace=$W/p.textproto", {"--trace", "hardware.profile"});
}

TEST_F(CliTest, DevicesAreWrittenInPlaceAndLinksAreFollowed) {
  Write("e.textproto", kGpt);
  fs::create_symlink("/dev/null", Work() + "/null");
  fs::create_symlink("real", Work() + "/link");
  ASSERT_EQ(Run("simulate $W/e.textproto --trace=$W/null").exit_code, 0);
  ASSERT_EQ(Run("simulate $W/e.textproto --trace=$W/link").exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(Work() + "/null"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_symlink(Work() + "/link"));
  EXPECT_GT(fs::file_size(Work() + "/real"), 1000U);
}

TEST_F(CliTest, TheComparisonsNameIsReserved) {
  WriteChanged("small", "comparison");
  Write("other.textproto", kGpt);
  ExpectBadInput("$W/other.textproto $W/e.textproto", {"e.textproto", "comparison", "rename"});
  EXPECT_EQ(Run("simulate $W/e.textproto --out=$W/out").exit_code, 0);  // nothing to collide with
}

TEST_F(CliTest, FilesAppearAllOrNone) {
  Write("e.textproto", kGpt);
  const std::string arguments = "simulate $W/e.textproto --out=$W/deep/out --trace=$W/t.pftrace";
  const std::vector<std::string> before = Files();
  // The trace, 100 KiB and more, is over the limit: blocks of 512 or 1024 bytes.
  Result result = Run(arguments, "", "ulimit -f 40;");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, AllOf(StartsWith("optimus: error: "), HasSubstr("File too large")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  EXPECT_EQ(Files(), before);
  // A device that is full fails last of all, and takes the folder with it.
  result = Run(absl::StrReplaceAll(arguments, {{"$W/t.pftrace", "/dev/full"}}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("/dev/full: cannot write"));
  EXPECT_EQ(Files(), before);
}

TEST_F(CliTest, NamesThatCannotBeFilesAreRefusedFirst) {
  WriteChanged("small", std::string(250, 'n'));
  ExpectBadInput("$W/e.textproto", {"--out", "262 bytes", "at most 255"});
  Write("e.textproto", kGpt);
  ExpectBadInput(absl::StrCat("$W/e.textproto --trace=$W/", std::string(256, 'n')),
                 {"--trace", "256 bytes"});
  fs::create_directories(Work() + "/out/small.pftrace");
  ExpectBadInput("$W/e.textproto", {"--out", "small.pftrace", "is a folder"});
}

TEST_F(CliTest, NamesNeverControlTheTerminal) {
  WriteChanged("small", R"(a\033[31m\nb\000)");
  Result result = Run("simulate $W/e.textproto");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\\x1b[31m"));
  result = Run("simulate $W/e.textproto examples/01_two_stage_1f1b.textproto");
  EXPECT_THAT(result.out, HasSubstr("speed-up = step of a\\x1b[31m\\x0ab\\x00 / step"));
  for (const char c : result.out) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  WriteChanged("gpt-11b", R"(a\033\nb)");
  ExpectBadInput("$W/e.textproto", {"a\\x1b\\x0ab"});
  WriteChanged("gpt-11b", std::string(5000, 'x'));
  result = Run("simulate $W/e.textproto");
  EXPECT_LT(result.err.size(), 1100U);
  EXPECT_THAT(result.err, AllOf(HasSubstr("llm"), HasSubstr("x...x"), EndsWith("\n")));
}

TEST_F(CliTest, AFileNameThatIsNoTextStillGivesAScheduleThatCanBeRead) {
  const std::string path = Write("\xff.textproto", absl::StrReplaceAll(kGpt, {{"small", ""}}));
  Result result = Run("simulate $W/*.textproto --schedule=$W/s.schedule.pb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  result = Run("simulate $W/s.schedule.pb --profile=h100-80gb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(CliTest, AnEmptyDataFolderIsExplained) {
  Write("e.textproto", kGpt);
  const Result result = Run("simulate $W/e.textproto", "", "export OPTIMUS_DATA_DIR=/nowhere;");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("OPTIMUS_DATA_DIR"), HasSubstr("/nowhere/")));
}

TEST_F(CliTest, AnExperimentCanComeFromStandardInput) {
  Write("e.textproto", kGpt);
  const Result piped = Run("simulate /dev/stdin --json", "", "cat $W/e.textproto |");
  ASSERT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(Json::parse(piped.out)["experiment"], "small");
}

TEST_F(CliTest, OutMustBeAFolder) {
  Write("e.textproto", kGpt);
  const Result result = Run("simulate $W/e.textproto --out=$W/e.textproto/sub");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("--out"), HasSubstr("is not a folder")));
}

// The second file is bad: nothing of the first is printed or written.
TEST_F(CliTest, AllFilesAreCheckedBeforeTheFirstRuns) {
  Write("good.textproto", kGpt);
  WriteChanged("gpus: 16", "gpus: 17");
  ExpectBadInput("$W/good.textproto $W/e.textproto", {"e.textproto", "hardware.gpus"});
}

TEST_F(CliTest, OutOfMemoryIsAResult) {
  const std::string file = "examples/09_out_of_memory.textproto";
  Result result = Run("simulate " + file);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("OUT OF MEMORY: stage 0"));
  result = Run("simulate --require-fit --json " + file);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(Json::parse(result.out)["fits"], false);
  Write("e.textproto", kGpt);
  EXPECT_EQ(Run("simulate --require-fit $W/e.textproto").exit_code, 0);
  EXPECT_EQ(Run("simulate --require-fit examples/01_two_stage_1f1b.textproto").exit_code, 1);
}

TEST_F(CliTest, HandCheckableExample) {
  const Result result = Run("simulate --json examples/01_two_stage_1f1b.textproto");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["iteration_time_s"], 0.009);
  EXPECT_EQ(json["compute_s"], 0.006);
  double bubbles = 0;
  for (const auto& bubble : json["bubbles"]) bubbles += bubble.get<double>();
  EXPECT_DOUBLE_EQ(bubbles, 0.003);
  EXPECT_FALSE(json.contains("mfu"));
  EXPECT_FALSE(json.contains("memory"));
}

TEST_F(CliTest, EveryFidelitySaysTheSame) {
  Write("e.textproto", kGpt);
  double folded = 0;
  for (const char* fidelity : {"folded", "group", "gpu"}) {
    const Result result = Run(absl::StrCat("simulate --json $W/e.textproto --fidelity=", fidelity));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["fidelity"], fidelity);
    if (folded == 0) folded = json["iteration_time_s"];
    EXPECT_NEAR(json["iteration_time_s"].get<double>() / folded, 1, 1e-12);
    double total = json["compute_s"].get<double>() + json["optimizer_s"].get<double>();
    for (const auto& bubble : json["bubbles"]) total += bubble.get<double>();
    EXPECT_NEAR(total / folded, 1, 1e-12);
  }
}

TEST_F(CliTest, OutHoldsEverythingOfEveryExperiment) {
  Write("a.textproto", kGpt);
  Write("b.textproto",
        absl::StrReplaceAll(kGpt, {{"small", "sm/all 2"}, {"RECOMPUTE_FULL", "RECOMPUTE_NONE"}}));
  const Result result = Run("simulate $W/a.textproto $W/b.textproto --out=$W/deep/out");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr("speed-"), HasSubstr("small"), HasSubstr("sm/all 2")));
  const std::string out = Work() + "/deep/out/";
  for (const char* name : {"small", "sm_all_2"}) {
    for (const char* ending : {".result.json", ".table.txt", ".pftrace", ".schedule.pb"}) {
      EXPECT_GT(fs::file_size(absl::StrCat(out, name, ending)), 0U);
    }
  }
  const Json one = Json::parse(*ReadFile(out + "small.result.json"));
  const Json both = Json::parse(*ReadFile(out + "comparison.result.json"));
  EXPECT_EQ(both["results"][0]["iteration_time_s"], one["iteration_time_s"]);
  EXPECT_GT(both["results"][1]["speed_up"].get<double>(), 1);  // without recomputation
  EXPECT_EQ(std::distance(fs::directory_iterator(out), fs::directory_iterator()), 10);
}

TEST_F(CliTest, AScheduleFileRunsAsTheExperimentItCameFrom) {
  Write("e.textproto", kGpt);
  Result result = Run("simulate --json $W/e.textproto --schedule=$W/s.schedule.pb");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json experiment = Json::parse(result.out);
  result = Run("simulate --json $W/s.schedule.pb --profile=h100-80gb");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json schedule = Json::parse(result.out);
  EXPECT_EQ(schedule["iteration_time_s"], experiment["iteration_time_s"]);
  EXPECT_EQ(schedule["bubbles"], experiment["bubbles"]);
  EXPECT_FALSE(schedule.contains("memory"));
  result = Run("simulate $W/s.schedule.pb --profile=h100-80gb");
  EXPECT_THAT(result.out, AllOf(HasSubstr("DP 2 x PP 2 x TP 4"), Not(HasSubstr("unspecified"))));
}

TEST_F(CliTest, ATraceIsWritten) {
  const Result result = Run("simulate examples/01_two_stage_1f1b.textproto --trace=$W/t.pftrace");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string trace = *ReadFile(Work() + "/t.pftrace");
  EXPECT_THAT(trace, AllOf(HasSubstr("stage 1"), HasSubstr("bubbles"), HasSubstr("pp_warmup")));
}

// Seconds of every slice name on the tracks called `track`, by process, in order.
std::vector<std::map<std::string, double>> SecondsByName(const traces::perfetto::Trace& trace,
                                                         const std::string& track) {
  std::map<std::uint64_t, std::size_t> process_of_track;
  std::map<std::uint32_t, std::size_t> process_of_sequence;
  std::map<std::uint32_t, std::map<std::uint64_t, std::string>> names;
  std::map<std::uint32_t, std::pair<std::string, std::uint64_t>> open;
  std::vector<std::map<std::string, double>> sums;
  for (const auto& packet : trace.packet()) {
    const std::uint32_t sequence = packet.trusted_packet_sequence_id();
    const auto& descriptor = packet.track_descriptor();
    if (descriptor.has_process()) sums.emplace_back();
    if (descriptor.thread().thread_name() == track) {
      process_of_track[descriptor.uuid()] = sums.size() - 1;
    }
    const std::uint64_t uuid = packet.trace_packet_defaults().track_event_defaults().track_uuid();
    if (process_of_track.count(uuid) > 0) process_of_sequence[sequence] = process_of_track[uuid];
    if (process_of_sequence.count(sequence) == 0 || !packet.has_track_event()) continue;
    for (const auto& name : packet.interned_data().event_names()) {
      names[sequence][name.iid()] = name.name();
    }
    if (packet.track_event().type() == traces::perfetto::TrackEvent::TYPE_SLICE_BEGIN) {
      open[sequence] = {names[sequence][packet.track_event().name_iid()], packet.timestamp()};
    } else {
      const auto& [name, start] = open[sequence];
      sums[process_of_sequence[sequence]][name] +=
          static_cast<double>(packet.timestamp() - start) * 1e-9;
    }
  }
  return sums;
}

TEST_F(CliTest, BubblesOfTheTraceAddUpToTheResult) {
  const Result result =
      Run("simulate --json examples/03_interleaved.textproto "
          "examples/04_small_gpt_tp.textproto --out=$W/out");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json results = Json::parse(result.out);
  for (const Json& json : results["results"]) {
    const std::string path = absl::StrCat(Work(), "/out/", json["experiment"].get<std::string>());
    traces::perfetto::Trace trace;
    ASSERT_TRUE(trace.ParseFromString(*ReadFile(path + ".pftrace")));
    auto sums = SecondsByName(trace, "bubbles");
    ASSERT_EQ(sums.size(), json["stages"].size());
    for (std::size_t stage = 0; stage < sums.size(); ++stage) {
      double total = 0;
      for (const auto& [name, seconds] : json["stages"][stage]["bubbles"].items()) {
        // Rounded to nanoseconds slice by slice.
        EXPECT_NEAR(sums[stage][name.substr(0, name.size() - 2)], seconds.get<double>(), 1e-6)
            << path << " stage " << stage << " " << name;
        total += seconds.get<double>();
      }
      EXPECT_GT(total, 0);
    }
  }
}

TEST_F(CliTest, SameInputSameOutput) {
  const auto run = [&] {
    const std::string out = Run("simulate examples/04_small_gpt_tp.textproto").out;
    return out.substr(0, out.rfind("\nwall "));
  };
  EXPECT_EQ(run(), run());
}

TEST_F(CliTest, AFullOrClosedStandardOutputIsAnError) {
  for (const char* redirect : {">/dev/full", ">&-"}) {
    for (const char* arguments :
         {"simulate examples/01_two_stage_1f1b.textproto", "--version", "--help"}) {
      const Result result = Run(arguments, redirect);
      EXPECT_EQ(result.exit_code, 1) << arguments << redirect;
      EXPECT_THAT(result.err, StartsWith("optimus: error: standard output: "));
    }
  }
}

}  // namespace
}  // namespace optimus::tools
