// `optimus sweep` as a user runs it, and as a cluster treats it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/cli_testing.h"
#include "tools/sweep/store/sqlite.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// 48 combinations, of which 4 have more replicas than the batch has samples; 3 stages are
// impossible on 16 GPUs.
constexpr char kSweep[] = R"(
  base: "base.textproto"
  strategies { name: "1f1b" }
  strategies { name: "gpipe" settings { field: "plan.schedule" value: "GPIPE" } }
  axes { field: "plan.pipeline_parallel" numbers: [1, 2, 3, 4] }
  axes { field: "plan.tensor_parallel" numbers: [1, 2, 4] }
  axes { field: "plan.recompute" values: ["RECOMPUTE_NONE", "RECOMPUTE_FULL"] }
  derived { field: "plan.data_parallel" expression: 'gpus / (pp * tp)' }
  conditions: "dp <= 8"
)";

class CliSweepTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    Write("base.textproto", kGpt);
    Write("s.textproto", kSweep);
  }
  Json RunJson(const std::string& arguments) {
    const Result result = Run(absl::StrCat(arguments, " --json"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  std::string Csv(const std::string& name) {
    return ReadFile(absl::StrCat(Work(), "/", name)).value_or("");
  }
  std::int64_t Rows(const std::string& database) {
    const auto opened = sweep::Database::Open(absl::StrCat(Work(), "/", database),
                                              sweep::Database::Mode::kReadOnly);
    if (!opened.ok()) return 0;
    const auto table = opened->Query("SELECT count(*) FROM results WHERE status = 'ok'");
    return table.ok() ? std::get<std::int64_t>(table->rows[0][0]) : 0;
  }
};

TEST_F(CliSweepTest, EveryPointIsARow) {
  const Json json = RunJson("sweep $W/s.textproto --db=$W/a.sqlite --csv=$W/a.csv");
  EXPECT_EQ(json["combinations"], 48);
  EXPECT_EQ(json["points"], 44);
  EXPECT_EQ(json["ok"].get<int>() + json["impossible"].get<int>(), 44);
  EXPECT_GT(json["ok"], 20);
  EXPECT_GT(json["impossible_points"], 3);
  // PP 1 has one order only.
  EXPECT_LT(json["simulations"].get<int>(), 52);
  const std::string csv = Csv("a.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 45);
  EXPECT_THAT(csv, testing::StartsWith("point,strategy,pp,tp,recompute,dp,status,error,"));
}

// A point of a sweep is what optimus simulate says of it.
TEST_F(CliSweepTest, TheSameFigureAsSimulate) {
  Write("one.textproto",
        "base: 'base.textproto' axes { field: 'plan.tensor_parallel' numbers: 4 }");
  RunJson("sweep $W/one.textproto --db=$W/one.sqlite");
  const Json simulated = RunJson("simulate $W/base.textproto");
  const auto table =
      sweep::Database::Open(absl::StrCat(Work(), "/one.sqlite"), sweep::Database::Mode::kReadOnly)
          ->Query("SELECT iteration_time_s, mfu_percent, memory_gib, profile_hash FROM sweep")
          .value();
  EXPECT_EQ(std::get<double>(table.rows[0][0]), simulated["iteration_time_s"].get<double>());
  EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0][1]), 100 * simulated["mfu"].get<double>());
  EXPECT_EQ(sweep::ToText(table.rows[0][3]), simulated["profile_hash"].get<std::string>());
}

// What a point simulates can be had as a file, wherever it is written to: with the GPUs that its
// seed slows down and the link that its axis widens.
TEST_F(CliSweepTest, APointBecomesAnExperiment) {
  ASSERT_TRUE(std::filesystem::create_directories(absl::StrCat(Work(), "/out")));
  Write("drawn.textproto", R"(
    base: "base.textproto"
    axes { field: "profile.nic.bandwidth_gb_per_s" numbers: [25, 50] }
    derived { field: "batch.global_batch" expression: "dp * 8" }
    stragglers { share: 0.2 factor_from: 1.1 factor_to: 1.4 }
    seeds: [5, 6]
  )");
  RunJson("sweep $W/drawn.textproto --db=$W/drawn.sqlite");
  const auto database = sweep::Database::Open(absl::StrCat(Work(), "/drawn.sqlite"),
                                              sweep::Database::Mode::kReadOnly);
  const auto table =
      database->Query("SELECT iteration_time_s, profile_hash FROM sweep ORDER BY point").value();
  ASSERT_EQ(table.rows.size(), 4U);
  for (int point = 0; point < 4; ++point) {
    const Result written = Run(absl::StrCat("sweep $W/drawn.textproto --point=", point,
                                            " --experiment=$W/out/p.textproto"));
    EXPECT_EQ(written.exit_code, 0) << written.err;
    EXPECT_THAT(written.out, HasSubstr("p_profile.textproto"));
    const Json simulated = RunJson("simulate $W/out/p.textproto");
    const auto& row = table.rows[static_cast<std::size_t>(point)];
    EXPECT_EQ(std::get<double>(row[0]), simulated["iteration_time_s"].get<double>());
    EXPECT_EQ(sweep::ToText(row[1]), simulated["profile_hash"].get<std::string>());
  }
  EXPECT_NE(table.rows[0][0], table.rows[1][0]) << "seeds differ";
}

TEST_F(CliSweepTest, ADryRunSimulatesNothing) {
  const Result text = Run("sweep $W/s.textproto --db=$W/a.sqlite --dry-run");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("44 of 48 combinations"), HasSubstr("4 by dp <= 8"),
                              HasSubstr("impossible: "), HasSubstr("hardware.gpus")));
  EXPECT_EQ(Files(), (std::vector<std::string>{"base.textproto", "s.textproto"}));
}

TEST_F(CliSweepTest, TheNumberOfJobsChangesNothing) {
  RunJson("sweep $W/s.textproto --db=$W/a.sqlite --csv=$W/a.csv --jobs=1");
  RunJson("sweep $W/s.textproto --db=$W/b.sqlite --csv=$W/b.csv --jobs=5");
  EXPECT_EQ(Csv("a.csv"), Csv("b.csv"));
}

// At twenty moments of its life, the sweep or one of its processes is killed.
TEST_F(CliSweepTest, KilledAnywhereItGoesOnToTheSameTable) {
  const auto begin = std::chrono::steady_clock::now();
  const Json whole = RunJson("sweep $W/s.textproto --db=$W/a.sqlite --csv=$W/a.csv --jobs=2");
  const double whole_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto simulations = whole["ok"].get<std::int64_t>();
  const std::int64_t all = Rows("a.sqlite");
  ASSERT_GT(simulations, 0);
  std::mt19937 random(7);  // NOLINT: the same moments in every run
  int interrupted = 0;
  for (int i = 0; i < 20; ++i) {
    const double moment_s = whole_s * static_cast<double>(random()) / 4294967296.0;
    const std::string sweep = "sweep $W/s.textproto --db=$W/k.sqlite --jobs=2 --csv=$W/k.csv";
    if (i % 2 == 0) {
      Run(sweep, "", absl::StrFormat("timeout --foreground -s KILL %.3f ", moment_s));
    } else {
      Run(sweep, absl::StrFormat("& p=$!; sleep %.3f; "
                                 "kill -9 $(cat /proc/$p/task/$p/children) 2>/dev/null; wait $p",
                                 moment_s));
    }
    const std::int64_t before = Rows("k.sqlite");
    interrupted += static_cast<int>(before < all);
    const Json rest = RunJson(absl::StrCat(sweep, " --resume"));
    EXPECT_EQ(rest["found"], before);
    EXPECT_EQ(rest["simulated"], all - before);  // nothing twice but what was in flight
    EXPECT_EQ(Csv("k.csv"), Csv("a.csv")) << i;
    for (const char* name : {"k.sqlite", "k.sqlite-wal", "k.sqlite-shm", "k.csv"}) {
      std::filesystem::remove(absl::StrCat(Work(), "/", name));
    }
  }
  EXPECT_GE(interrupted, 5);
}

TEST_F(CliSweepTest, AnInterruptEndsItAndKeepsWhatIsThere) {
  // As soon as it writes: before, an interrupt just ends it.
  Write("interrupt.sh", R"sh("$@" & sweep=$!
    until [ -e "$(dirname "$0")/a.sqlite-wal" ]; do sleep 0.01; done
    kill -INT $sweep; wait $sweep)sh");
  const Result result = Run("sweep $W/s.textproto --db=$W/a.sqlite", "",
                            absl::StrCat("timeout 200 sh ", Work(), "/interrupt.sh "));
  if (result.exit_code != 0) {  // it was not through
    EXPECT_THAT(result.err, HasSubstr("interrupted by signal 2"));
    EXPECT_THAT(result.err, HasSubstr("--resume"));
  }
  EXPECT_EQ(Run("sweep $W/s.textproto --db=$W/a.sqlite --resume").exit_code, 0);
}

TEST_F(CliSweepTest, ShardsMergedAreTheWhole) {
  RunJson("sweep $W/s.textproto --db=$W/a.sqlite --csv=$W/a.csv");
  std::string shards;
  int points = 0;
  for (int i = 0; i < 3; ++i) {
    const Json json =
        RunJson(absl::StrFormat("sweep $W/s.textproto --db=$W/s%d.sqlite --shard=%d/3", i, i));
    points += json["shard_points"].get<int>();
    absl::StrAppend(&shards, " $W/s", i, ".sqlite");
  }
  EXPECT_EQ(points, 44);
  for (int i = 0; i < 2; ++i) {  // once more changes nothing
    const Result merged = Run(absl::StrCat("sweep merge $W/m.sqlite", shards));
    EXPECT_EQ(merged.exit_code, 0) << merged.err;
    const Result csv = Run("sweep show $W/m.sqlite --csv");
    EXPECT_EQ(csv.out, Csv("a.csv"));
  }
}

TEST_F(CliSweepTest, PointsOverALimitAreRows) {
  const Result result = Run("sweep $W/s.textproto --db=$W/a.sqlite --time-limit=1ms");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, HasSubstr("over the time limit"));
  EXPECT_THAT(result.err, HasSubstr("--resume"));
  EXPECT_EQ(Run("sweep $W/s.textproto --db=$W/a.sqlite --resume").exit_code, 0);
}

TEST_F(CliSweepTest, Mistakes) {
  ExpectOneLineError("sweep", {"SWEEP is required"});
  ExpectOneLineError("sweep $W/none.textproto", {"none.textproto"});
  ExpectOneLineError("sweep $W/s.textproto --db=$W/a.sqlite --shard=3/3",
                     {"--shard", "0 to n - 1"});
  ExpectOneLineError("sweep $W/s.textproto --db=$W/a.sqlite --time-limit=5", {"--time-limit", "5"});
  ExpectOneLineError("sweep $W/s.textproto --db=$W/a.sqlite --memory-limit=x", {"--memory-limit"});
  ExpectOneLineError("sweep $W/s.textproto --db=$W/base.textproto", {"--db", "base"});
  ExpectOneLineError("sweep $W/s.textproto --db=$W/no/a.sqlite", {"no/a.sqlite"});
  ExpectOneLineError("sweep $W/s.textproto --db=$W", {"--db"});
  ExpectOneLineError("sweep $W/s.textproto --db=$W/a.sqlite --csv=$W/a.sqlite", {"--csv", "--db"});
  ExpectOneLineError("sweep $W/base.textproto", {"base.textproto"});
  ExpectOneLineError("sweep $W/s.textproto --point=44 --experiment=$W/p.textproto",
                     {"--point", "44", "0 to 43"});
  ExpectOneLineError("sweep $W/s.textproto --point=-1 --experiment=$W/p.textproto", {"--point"});
  ExpectOneLineError("sweep $W/s.textproto --point=1", {"--experiment"});
  ExpectOneLineError("sweep $W/s.textproto --point=1 --experiment=$W/p.textproto --resume",
                     {"--point", "--resume"});
  ExpectOneLineError("sweep $W/s.textproto --point=12 --experiment=$W/p.textproto",
                     {"--point: 12", "pp 3", "impossible", "hardware.gpus"});
  ExpectOneLineError("sweep $W/s.textproto --point=0 --experiment=$W/base.textproto",
                     {"--experiment", "base"});
  Write("text.sqlite",
        "no database, and longer than a header of one hundred bytes: " + std::string(100, 'x'));
  ExpectOneLineError("sweep $W/s.textproto --db=$W/text.sqlite --resume", {"text.sqlite"});
}

}  // namespace
}  // namespace optimus::tools
