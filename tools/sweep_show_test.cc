#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/testing_folder.h"
#include "tools/exit_codes.h"
#include "tools/sweep/show/csv.h"
#include "tools/sweep/show/testing_show.h"
#include "tools/sweep_show_command.h"
#include "tools/sweep_show_json.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Shown {
  absl::Status status;
  std::string out;
};

class SweepShowTest : public ::testing::Test {
 protected:
  SweepShowTest() { EXPECT_TRUE(sweep::MakeTestingPlans(path(), {512, 3072}).ok()); }

  std::string path(const std::string& name = "r.sqlite") const {
    return (folder_.path() / name).string();
  }

  // `optimus sweep show PATH FLAGS...`
  Shown Show(std::vector<std::string> arguments) const {
    SweepShowFlags flags;
    CLI::App app;
    AddSweepShowCommand(app, flags);
    arguments.insert(arguments.begin(), {"show", path()});
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return {absl::InvalidArgumentError(absl::StrCat("parse: ", error.what())), ""};
    }
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const absl::StatusOr<int> code = RunSweepShow(flags);
    ::testing::internal::GetCapturedStderr();
    std::string out = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(code.value_or(kExitSuccess), kExitSuccess);
    return {code.status(), std::move(out)};
  }
  std::string Text(const std::vector<std::string>& arguments) const {
    const Shown shown = Show(arguments);
    EXPECT_TRUE(shown.status.ok()) << shown.status;
    return shown.out;
  }
  std::string Error(const std::vector<std::string>& arguments) const {
    const Shown shown = Show(arguments);
    EXPECT_EQ(shown.out, "");
    return std::string(shown.status.message());
  }
  std::vector<std::string> FilesThere() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  TestingFolder folder_;
};

TEST_F(SweepShowTest, TheBestWithAllThatWasLeftOutCounted) {
  EXPECT_EQ(
      Text({"--top=3", "--where=gpus = 3072", "--columns=strategy,tp,iteration_time_s"}),
      absl::StrCat("sweep       a_test\nversion     ", OPTIMUS_VERSION,
                   "\n"
                   "profile     00000000000000bb\n"
                   "points      480 of 480 points are done: 404 ok, 72 impossible, 4 failed\n"
                   "answers     from 69 points where gpus = 3072; 131 plans do not fit into a "
                   "GPU's memory and are left\n"
                   "            out (--all keeps them)\n"
                   "\n"
                   "The best 3 of 69 by iteration_time_s (low is good)\n"
                   "point  strategy  tp  iteration_time_s\n"
                   "                                    s\n"
                   "-----  --------  --  ----------------\n"
                   "  455  OPTIMUS    4            5.5295\n"
                   "  459  OPTIMUS    4            5.5395\n"
                   "  438  OPTIMUS    2            5.5808\n"));
}

TEST_F(SweepShowTest, ASweepThatRunsIsShownAsFarAsItIs) {
  {
    const auto database = sweep::Database::Open(path(), sweep::Database::Mode::kReadWrite).value();
    ASSERT_TRUE(database.Execute("PRAGMA journal_mode = WAL").ok());
    ASSERT_TRUE(database.Execute("DELETE FROM results WHERE hash < 'hash2'").ok());
  }
  const auto writer = sweep::Database::Open(path(), sweep::Database::Mode::kReadWrite).value();
  ASSERT_TRUE(writer.Execute("BEGIN IMMEDIATE; DELETE FROM results").ok());
  EXPECT_THAT(Text({}),
              AllOf(HasSubstr("368 of 480 points are done: "), HasSubstr("\nThe best 10 of ")));
}

TEST_F(SweepShowTest, TheCsvOfAllIsTheTable) {
  const auto database = sweep::Database::Open(path(), sweep::Database::Mode::kReadOnly).value();
  const std::string table = sweep::TableCsv(database, sweep::ReadAbout(database).value()).value();
  EXPECT_EQ(Text({"--csv"}), table);
  EXPECT_EQ(Text({absl::StrCat("--csv=", path("t.csv"))}), "");
  EXPECT_EQ(ReadFile(path("t.csv")).value(), table);
}

TEST_F(SweepShowTest, TheCsvOfATableIsThatTable) {
  EXPECT_EQ(Text({"--csv", "--top=2", "--columns=tp", "--where", "gpus = 3072"}),
            "point,tp\n455,4\n459,4\n");
  EXPECT_THAT(Text({"--csv", "--group-by=tp", "--columns=tp"}), StartsWith("tp,points,point\n2,"));
  EXPECT_THAT(Text({"--csv", "--sensitivity"}),
              StartsWith("axis,value,points,best,geometric_mean,reference,pairs,ratio\n"));
  EXPECT_THAT(Text({"--csv", "--errors"}), HasSubstr("\nimpossible,72,1,MEGATRON_LM,512,1,1,2,"));
  EXPECT_THAT(Error({"--csv", "--errors", "--sensitivity"}), StartsWith("--csv: takes one table"));
}

TEST_F(SweepShowTest, SortAndWhereAndAll) {
  const auto first = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--csv", "--top=1", "--columns=tp,pp,memory_gib"});
    return std::vector<std::string>(absl::StrSplit(Text(arguments), '\n'))[1];
  };
  EXPECT_EQ(first({"--sort=memory_gib"}), first({"--sort=+memory_gib"}));
  EXPECT_THAT(first({"--sort=-memory_gib", "--all"}), HasSubstr(",1,1,1290"));
  EXPECT_THAT(first({"--sort=-memory_gib"}), Not(HasSubstr(",1,1,")));
  EXPECT_THAT(Error({"--sort=memory"}), StartsWith("--sort: no column \"memory\"; columns: "));
  EXPECT_THAT(Error({"--where=memory > 3"}), StartsWith("--where: no such column: memory; "));
  EXPECT_THAT(Error({"--group-by=x"}), StartsWith("--group-by: no column"));
  EXPECT_THAT(Error({"--pareto=memory_gib"}), StartsWith("--pareto: takes two columns"));
}

// Two plans by three seeds; one draw of tp 2 is missing.
TEST_F(SweepShowTest, SeedsAreOneRowUnlessAskedFor) {
  std::vector<sweep::TestingPoint> points;
  for (const int tp : {1, 2}) {
    for (const int seed : {1, 2, 3}) {
      sweep::TestingPoint point{{std::int64_t{tp}, std::int64_t{seed}}, {}};
      point.metrics = {{"iteration_time_s", static_cast<double>(tp * 10 + seed)},
                       {"memory_gib", 3.0},
                       {"fits", std::int64_t{1}}};
      if (tp == 2 && seed == 3) {
        point = {point.axes, {}, sweep::kStatusFailed, "the engine stopped"};
      }
      points.push_back(point);
    }
  }
  ASSERT_TRUE(std::filesystem::remove(path()));
  ASSERT_TRUE(sweep::MakeTestingSweep(
                  path(),
                  {sweep::TestingAxis("tp", "INTEGER"), sweep::TestingAxis("seed", "INTEGER")},
                  points)
                  .ok());
  const std::string means = Text({"--columns=tp,iteration_time_s"});
  EXPECT_THAT(means, AllOf(HasSubstr("means over 3 seeds (--per-seed: each one); 1 of their 6 "
                                     "points did not run"),
                           HasSubstr("The best 2 of 2"), HasSubstr("    0   1            12.000\n"),
                           HasSubstr("    3   2            21.500\n")));
  EXPECT_THAT(Text({"--columns=tp,iteration_time_s_least,iteration_time_s_most"}),
              AllOf(HasSubstr("11.000"), HasSubstr("13.000"), HasSubstr("22.000")));
  const std::string single = Text({"--columns=tp,iteration_time_s", "--per-seed"});
  EXPECT_THAT(single, AllOf(HasSubstr("The best 5 of 5"), HasSubstr("13.000"), HasSubstr("22.000"),
                            Not(HasSubstr("21.500"))));
  EXPECT_THAT(Error({"--where=seed = 2"}), HasSubstr("--per-seed"));
  EXPECT_THAT(Text({"--errors"}), HasSubstr("the engine stopped"));
}

TEST_F(SweepShowTest, GroupsFrontSensitivityAndErrorsTogether) {
  const std::string text = Text({"--group-by=strategy", "--pareto=iteration_time_s,memory_gib",
                                 "--sensitivity", "--errors", "--where=gpus = 3072"});
  EXPECT_THAT(text, HasSubstr("\nThe best of every strategy by iteration_time_s (low is good)\n"));
  EXPECT_THAT(text, HasSubstr("\nPareto front of iteration_time_s (low is good), memory_gib (low"));
  EXPECT_THAT(text, HasSubstr("\nSensitivity of iteration_time_s (low is good) over 69 points\n"));
  EXPECT_THAT(text, HasSubstr("  - impossible, 36 points: plan.virtual_stages: 2, but"));
  EXPECT_THAT(text, Not(HasSubstr("The best 10")));
}

// Every name in the JSON has its line in the reference, and the other way round.
void Collect(const nlohmann::json& json, const std::string& prefix, std::set<std::string>& names) {
  if (json.is_array()) {
    for (const auto& element : json) Collect(element, prefix, names);
    if (json.empty() || !json[0].is_object()) names.insert(prefix);
    return;
  }
  const bool by_column =
      prefix == "best" || prefix == "groups" || prefix == "front" || prefix == "errors.axes";
  if (!json.is_object() || by_column) {
    names.insert(prefix);
    return;
  }
  for (const auto& [key, value] : json.items()) {
    Collect(value, prefix.empty() ? key : absl::StrCat(prefix, ".", key), names);
  }
}

TEST_F(SweepShowTest, JsonIsAsDocumented) {
  const auto json = nlohmann::json::parse(
      Text({"--json", "--top=4", "--group-by=strategy", "--pareto=iteration_time_s,memory_gib",
            "--sensitivity", "--errors"}));
  std::set<std::string> names, documented;
  Collect(json, "", names);
  for (const JsonField& field : SweepShowJsonFields()) documented.insert(field.name);
  EXPECT_EQ(names, documented);
  EXPECT_EQ(json["best"].size(), 4);
  EXPECT_EQ(json["best"][0]["point"], 455);
  EXPECT_EQ(json["points"]["ok"], 404);
}

TEST_F(SweepShowTest, PlotsAppearAllOrNone) {
  const std::vector<std::string> plot = {"--plot=scaling", "--x=gpus", "--series=strategy",
                                         absl::StrCat("--out=", path("p.svg"))};
  std::vector<std::string> arguments = plot;
  arguments.push_back("--out=/nowhere/p.png");
  EXPECT_NE(Error(arguments), "");
  EXPECT_EQ(FilesThere(), std::vector<std::string>{"r.sqlite"});
  arguments.back() = absl::StrCat("--out=", path("p.png"));
  arguments.push_back(absl::StrCat("--plot-script=", path("p.gp")));
  EXPECT_EQ(Text(arguments), "");
  EXPECT_THAT(ReadFile(path("p.svg")).value(), EndsWith("</svg>\n\n"));
  EXPECT_THAT(ReadFile(path("p.png")).value(), StartsWith("\x89PNG"));
  EXPECT_THAT(ReadFile(path("p.gp")).value(), HasSubstr("$line3 << EOD"));
}

TEST_F(SweepShowTest, FlagsThatDoNotGoTogether) {
  EXPECT_THAT(Error({"--plot=scaling", "--x=gpus"}), StartsWith("--plot: needs --out="));
  EXPECT_THAT(Error({"--plot=pie"}), StartsWith("parse: --plot"));
  EXPECT_THAT(Error({"--x=gpus"}), StartsWith("parse: "));
  EXPECT_THAT(Error({"--csv", "--json"}), HasSubstr("would both print"));
  EXPECT_THAT(Error({"--plot=pareto", "--out=p.pdf"}), HasSubstr(".svg or .png"));
  EXPECT_THAT(Error({absl::StrCat("--csv=", path())}), HasSubstr("would overwrite an input"));
}

TEST_F(SweepShowTest, OtherFilesAreRefused) {
  SweepShowFlags flags;
  flags.database = path("none.sqlite");
  EXPECT_TRUE(absl::IsNotFound(RunSweepShow(flags).status()));
  flags.database = path("other.sqlite");
  ASSERT_TRUE(sweep::Database::Open(flags.database, sweep::Database::Mode::kCreate)
                  ->Execute("CREATE TABLE t(a)")
                  .ok());
  EXPECT_THAT(std::string(RunSweepShow(flags).status().message()),
              HasSubstr("other.sqlite: is not a database of optimus sweep"));
}

}  // namespace
}  // namespace optimus::tools
