#include "tools/sweep/store/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "base/testing_folder.h"
#include "tools/sweep/store/merge_rows.h"
#include "tools/sweep/store/testing_sweep.h"

namespace optimus::sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<SqlValue>>;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class MergeTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }

  // A sweep of `n` points with a result each; every third is impossible.
  Database Whole(const std::string& name, std::int64_t n) const {
    std::vector<TestingPoint> points;
    for (std::int64_t i = 0; i < n; ++i) {
      const double seconds = 1.0 / static_cast<double>(i + 3);
      points.push_back({{i}, {{"iteration_time_s", seconds}, {"fidelity", std::string("x")}}});
      if (i % 3 == 2) points.back() = {{i}, {}, kStatusImpossible, "too large"};
    }
    return MakeTestingSweep(Path(name), {TestingAxis("tp", "INTEGER")}, points).value();
  }

  // The points of `whole` whose number is `shard` modulo `shards`.
  std::string Shard(const std::string& name, std::int64_t n, int shard, int shards) const {
    Run(Whole(name, n),
        absl::StrCat("DELETE FROM points WHERE point % ", shards, " != ", shard,
                     "; DELETE FROM results WHERE hash NOT IN (SELECT hash FROM points);"
                     "UPDATE about SET value = (SELECT COUNT(*) FROM points) WHERE name = "
                     "'points'"));
    return Path(name);
  }

  static void Run(const Database& database, const std::string& sql) {
    const absl::Status status = database.Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Change(const std::string& path, const std::string& sql) const {
    Run(Database::Open(path, Database::Mode::kReadWrite).value(), sql);
  }

  static Rows Query(const std::string& path, const std::string& sql) {
    return Database::Open(path, Database::Mode::kReadOnly)->Query(sql)->rows;
  }
  // All that a database has.
  static std::vector<Rows> Contents(const std::string& path) {
    return {Query(path, "SELECT * FROM about ORDER BY name"),
            Query(path, "SELECT * FROM columns ORDER BY position"),
            Query(path, "SELECT * FROM points ORDER BY point"),
            Query(path, "SELECT * FROM results ORDER BY hash"),
            Query(path, "SELECT * FROM sweep ORDER BY point")};
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // The message of a merge of a.sqlite and b.sqlite that is refused both ways and leaves nothing.
  std::string Refused(bool allow_mixed_versions = false) const {
    const auto before = Files();
    const std::string a = Path("a.sqlite");
    const std::string b = Path("b.sqlite");
    EXPECT_TRUE(absl::IsInvalidArgument(
        MergeSweeps(Path("out.sqlite"), {b, a}, allow_mixed_versions).status()));
    const absl::Status status =
        MergeSweeps(Path("out.sqlite"), {a, b}, allow_mixed_versions).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(Files(), before);
    return Message(status);
  }

  TestingFolder folder_;
};

TEST_F(MergeTest, ShardsBecomeTheWhole) {
  Whole("whole.sqlite", 10);
  const std::vector<std::string> shards = {Shard("2.sqlite", 10, 2, 3), Shard("0.sqlite", 10, 0, 3),
                                           Shard("1.sqlite", 10, 1, 3)};
  const auto summary = MergeSweeps(Path("out.sqlite"), shards, false);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(Contents(Path("out.sqlite")), Contents(Path("whole.sqlite")));
  EXPECT_EQ(summary->databases, 3);
  EXPECT_EQ(summary->counts.all(), 10);
  EXPECT_EQ(summary->counts.ok, 7);
  EXPECT_EQ(summary->counts.impossible, 3);
  EXPECT_EQ(summary->counts.by_chance() + summary->counts.missing + summary->not_listed, 0);
  EXPECT_THAT(summary->versions, ElementsAre(OPTIMUS_VERSION));
  EXPECT_THAT(Files(),
              ElementsAre("0.sqlite", "1.sqlite", "2.sqlite", "out.sqlite", "whole.sqlite"));
}

TEST_F(MergeTest, AgainAndInStepsIsTheSame) {
  const std::string a = Shard("a.sqlite", 10, 0, 3);
  const std::string b = Shard("b.sqlite", 10, 1, 3);
  const std::string c = Shard("c.sqlite", 10, 2, 3);
  ASSERT_TRUE(MergeSweeps(Path("once.sqlite"), {a, b, c}, false).ok());
  const std::string steps = Path("steps.sqlite");
  ASSERT_TRUE(MergeSweeps(steps, {c}, false).ok());
  const auto two = MergeSweeps(steps, {b}, false);
  EXPECT_EQ(two->counts.all(), 6);
  EXPECT_EQ(two->not_listed, 4);
  EXPECT_EQ(MergeSweeps(steps, {a, b, a}, false)->databases, 3);
  EXPECT_EQ(Contents(steps), Contents(Path("once.sqlite")));
  // As `merge all.sqlite *.sqlite` does the second time.
  const auto again = MergeSweeps(steps, {a, b, c, steps}, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->databases, 4);
  EXPECT_EQ(Contents(steps), Contents(Path("once.sqlite")));
}

TEST_F(MergeTest, PointsWithoutAResultAreCounted) {
  const std::string a = Shard("a.sqlite", 10, 0, 2);
  Change(a, "DELETE FROM results WHERE hash IN ('hash2', 'hash4')");
  const std::string b = Shard("b.sqlite", 10, 1, 2);
  Change(b, "UPDATE results SET status = 'timeout' WHERE hash = 'hash3'");
  const auto summary = MergeSweeps(Path("out.sqlite"), {a, b}, false);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->counts.all(), 10);
  EXPECT_EQ(summary->counts.ok, 5);
  EXPECT_EQ(summary->counts.impossible, 2);
  EXPECT_EQ(summary->counts.missing, 2);
  EXPECT_EQ(summary->counts.by_chance(), 1);
  EXPECT_EQ(summary->not_listed, 0);
}

TEST_F(MergeTest, AShardThatHasNotBegunIsRefused) {
  Shard("a.sqlite", 4, 0, 2);
  std::ofstream(Path("b.sqlite")).flush();
  EXPECT_THAT(Refused(), HasSubstr("b.sqlite: has no tables: its sweep ended before it began"));
}

TEST_F(MergeTest, WhatFailedByChanceGivesWay) {
  for (const char* status : {kStatusTimeout, kStatusOutOfMemory, kStatusFailed}) {
    const std::string good = Shard(absl::StrCat(status, ".good"), 4, 0, 1);
    const std::string bad = Shard(absl::StrCat(status, ".bad"), 4, 0, 1);
    Change(bad, absl::StrCat("UPDATE results SET status = '", status,
                             "', error = 'after 60 s', iteration_time_s = NULL"));
    const std::string out = Path(absl::StrCat(status, ".out"));
    ASSERT_TRUE(MergeSweeps(out, {bad}, false).ok());
    EXPECT_EQ(Contents(out), Contents(bad));
    EXPECT_EQ(MergeSweeps(out, {good}, false)->counts.by_chance(), 0);
    EXPECT_EQ(Contents(out), Contents(good));
    EXPECT_EQ(MergeSweeps(out, {bad}, false)->counts.by_chance(), 0);
    EXPECT_EQ(Contents(out), Contents(good));
  }
}

TEST_F(MergeTest, TheNewerVersionWinsIfAllowed) {
  Shard("a.sqlite", 4, 0, 1);
  Shard("b.sqlite", 4, 0, 1);
  Change(Path("a.sqlite"),
         "UPDATE results SET version = '0.9.0';"
         "UPDATE about SET value = '0.9.0' WHERE name = 'version'");
  Change(Path("b.sqlite"),
         "UPDATE results SET version = '0.10.0', iteration_time_s = 7, profile_hash = 'ff';"
         "UPDATE about SET value = '0.10.0' WHERE name = 'version';"
         "DELETE FROM results WHERE hash = 'hash0';"
         "UPDATE results SET status = 'failed' WHERE hash = 'hash1'");
  EXPECT_THAT(Refused(),
              AllOf(HasSubstr("b.sqlite: is of optimus 0.10.0"), HasSubstr("a.sqlite of 0.9.0"),
                    HasSubstr("--allow-mixed-versions")));
  for (const auto& order : {std::vector<std::string>{"a.sqlite", "b.sqlite"},
                            std::vector<std::string>{"b.sqlite", "a.sqlite"}}) {
    const std::string out = Path("out_of_" + order[0]);
    const auto summary = MergeSweeps(out, {Path(order[0]), Path(order[1])}, true);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_THAT(summary->versions, ElementsAre("0.9.0", "0.10.0"));
    EXPECT_EQ(summary->of_several_versions, 3);
    EXPECT_EQ(Query(out, "SELECT version FROM sweep ORDER BY point"),
              (Rows{{std::string("0.9.0")},  // the only one
                    {std::string("0.9.0")},  // the only one that did not fail
                    {std::string("0.10.0")},
                    {std::string("0.10.0")}}));
    EXPECT_EQ(Query(out, "SELECT value FROM about WHERE name = 'version'"),
              (Rows{{std::string("0.10.0")}}));
  }
}

TEST_F(MergeTest, AnotherSweepIsRefused) {
  Shard("a.sqlite", 4, 0, 2);
  Shard("b.sqlite", 4, 1, 2);
  Change(Path("b.sqlite"), "UPDATE about SET value = '00ff' WHERE name = 'sweep_hash'");
  EXPECT_THAT(Refused(), AllOf(HasSubstr("b.sqlite: is of the sweep a_test (sweep_hash 00ff)"),
                               HasSubstr("a.sqlite of a_test (00000000000000aa)")));
}

TEST_F(MergeTest, OtherColumnsAreRefused) {
  Shard("a.sqlite", 4, 0, 2);
  MakeTestingSweep(Path("b.sqlite"), {TestingAxis("pp", "INTEGER", "GPUs")}, {}).value();
  EXPECT_THAT(Refused(), AllOf(HasSubstr("b.sqlite: column 0 is axis pp (INTEGER, GPUs, plan.pp)"),
                               HasSubstr("a.sqlite it is axis tp (INTEGER, plan.tp)")));
}

TEST_F(MergeTest, APointWithTwoSimulationsIsRefused) {
  Shard("a.sqlite", 4, 0, 1);
  Shard("b.sqlite", 4, 0, 1);
  Change(Path("b.sqlite"), "UPDATE points SET hash = 'other' WHERE point = 2");
  EXPECT_THAT(Refused(), AllOf(HasSubstr("b.sqlite: point 2 has hash other"),
                               HasSubstr("a.sqlite it has hash2")));
  Change(Path("b.sqlite"), "UPDATE points SET hash = 'hash2', tp = 64 WHERE point = 2");
  EXPECT_THAT(Refused(),
              AllOf(HasSubstr("b.sqlite: point 2 has tp 64"), HasSubstr("a.sqlite it has 2")));
}

TEST_F(MergeTest, TwoResultsOfOneVersionAreRefused) {
  Shard("a.sqlite", 4, 0, 1);
  Shard("b.sqlite", 4, 0, 1);
  Change(Path("b.sqlite"), "UPDATE results SET iteration_time_s = 0.5 WHERE hash = 'hash3'");
  EXPECT_THAT(Refused(), AllOf(HasSubstr("b.sqlite: the simulation hash3 has iteration_time_s 0.5"),
                               HasSubstr("a.sqlite it has 0.16666666666666666")));
  Change(Path("b.sqlite"), "UPDATE results SET iteration_time_s = NULL WHERE hash = 'hash3'");
  EXPECT_THAT(Refused(), HasSubstr("has iteration_time_s nothing"));
  Shard("c.sqlite", 4, 0, 1);
  Change(Path("b.sqlite"), "ATTACH '" + Path("c.sqlite") +
                               "' AS c;"
                               "REPLACE INTO main.results SELECT * FROM c.results;"
                               "UPDATE main.results SET profile_hash = 'ff' WHERE hash = 'hash1'");
  EXPECT_THAT(Refused(), HasSubstr("b.sqlite: the simulation hash1 has profile_hash ff"));
  // Nothing tells which of the two is right, whatever is allowed.
  EXPECT_THAT(Refused(true), HasSubstr("the simulation hash1 has profile_hash ff"));
}

TEST_F(MergeTest, WallTimesMayDiffer) {
  const std::string a = Shard("a.sqlite", 4, 0, 1);
  const std::string b = Shard("b.sqlite", 4, 0, 1);
  Change(b, "UPDATE results SET wall_s = 9, peak_memory_mib = 99");
  ASSERT_TRUE(MergeSweeps(Path("ab.sqlite"), {a, b}, false).ok());
  ASSERT_TRUE(MergeSweeps(Path("ba.sqlite"), {b, a}, false).ok());
  EXPECT_EQ(Contents(Path("ab.sqlite")), Contents(a));
  EXPECT_EQ(Contents(Path("ba.sqlite")), Contents(a));
}

TEST_F(MergeTest, AFailedMergeLeavesTheOldFile) {
  const std::string a = Shard("a.sqlite", 6, 0, 2);
  const std::string b = Shard("b.sqlite", 6, 1, 2);
  const std::string out = Path("out.sqlite");
  ASSERT_TRUE(MergeSweeps(out, {a}, false).ok());
  const auto before = Contents(out);
  EXPECT_TRUE(absl::IsNotFound(MergeSweeps(out, {b, Path("none.sqlite")}, false).status()));
  EXPECT_EQ(Contents(out), before);
  std::ofstream(Path("text")) << "this is no database, and long enough to see that it is none";
  const absl::Status status = MergeSweeps(Path("text"), {a}, false).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(Path("text")));
  Run(Database::Open(Path("other"), Database::Mode::kCreate).value(), "CREATE TABLE t(a)");
  EXPECT_THAT(Message(MergeSweeps(Path("other"), {a}, false).status()),
              HasSubstr("other: is not a database of optimus sweep"));
}

TEST_F(MergeTest, AnOldOutIsReadAgainAsAWhole) {
  const std::string out = Shard("out.sqlite", 6, 0, 2);
  Change(out, "PRAGMA journal_mode = WAL");
  const Database reader = Database::Open(out, Database::Mode::kReadOnly).value();
  Run(reader, "BEGIN");
  const auto before = reader.Query("SELECT COUNT(*) FROM points")->rows;
  ASSERT_TRUE(MergeSweeps(out, {Shard("b.sqlite", 6, 1, 2)}, false).ok());
  EXPECT_EQ(reader.Query("SELECT COUNT(*) FROM points")->rows, before);
  Run(reader, "COMMIT");
  EXPECT_EQ(reader.Query("SELECT COUNT(*) FROM points")->rows, (Rows{{std::int64_t{6}}}));
}

TEST_F(MergeTest, WhatIsBeingWrittenIsReadAsItIsAtOneMoment) {
  const std::string a = Shard("a.sqlite", 4, 0, 1);
  const Database writer = Database::Open(a, Database::Mode::kReadWrite).value();
  Run(writer,
      "PRAGMA journal_mode = WAL; DELETE FROM results WHERE hash = 'hash1'; BEGIN;"
      "DELETE FROM results");
  const auto during = MergeSweeps(Path("during.sqlite"), {a}, false);
  ASSERT_TRUE(during.ok()) << during.status();
  EXPECT_EQ(during->counts.missing, 1);  // committed, in the WAL only; the rest is not committed
  Run(writer, "COMMIT");
  EXPECT_EQ(MergeSweeps(Path("after.sqlite"), {a}, false)->counts.missing, 4);
}

TEST_F(MergeTest, LeftoversOfAnotherDatabaseAreRefused) {
  const std::string a = Shard("a.sqlite", 4, 0, 1);
  std::ofstream(Path("out.sqlite-wal")) << "x";
  EXPECT_THAT(Message(MergeSweeps(Path("out.sqlite"), {a}, false).status()),
              AllOf(HasSubstr("out.sqlite-wal"), HasSubstr("remove it")));
}

TEST_F(MergeTest, ALinkStaysALink) {
  const std::string a = Shard("a.sqlite", 4, 0, 1);
  std::filesystem::create_symlink("target.sqlite", Path("link.sqlite"));
  ASSERT_TRUE(MergeSweeps(Path("link.sqlite"), {a}, false).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.sqlite")));
  EXPECT_EQ(Contents(Path("target.sqlite")), Contents(a));
}

TEST_F(MergeTest, AWriteThatFailsLeavesNothing) {
  const std::string a = Shard("a.sqlite", 9, 0, 1);
  Change(a, "UPDATE results SET error = hex(zeroblob(50000))");
  const auto before = Files();
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{.rlim_cur = 256 << 10, .rlim_max = old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = MergeSweeps(Path("out.sqlite"), {a}, false).status();
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("out.sqlite"));
  EXPECT_EQ(Files(), before);
}

TEST(OlderVersionTest, GoesByNumbers) {
  const std::vector<std::string> sorted = {"0.1",     "0.1.0",   "0.1.9", "0.1.10",
                                           "0.2.0-a", "0.2.0-b", "1.0.0", "10.0"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j) {
      EXPECT_EQ(OlderVersion(sorted[i], sorted[j]), i < j) << sorted[i] << " " << sorted[j];
    }
  }
}

// Any order, any steps, against one rule for two rows.
class RandomMergeTest : public MergeTest {
 protected:
  static constexpr std::int64_t kPoints = 12;

  // Part of a sweep in which two points share a simulation; results are of two versions, and may
  // have failed by chance.
  std::string Part(const std::string& name, std::mt19937& random) const {
    const std::string whole = Path("whole");
    if (!std::filesystem::exists(whole)) Whole("whole", kPoints);
    std::filesystem::copy_file(whole, Path(name));
    const Database part = Database::Open(Path(name), Database::Mode::kReadWrite).value();
    Run(part, "BEGIN; UPDATE points SET hash = 'hash0' WHERE point = 1");
    for (std::int64_t i = 0; i < kPoints; ++i) {
      const std::string of_hash = absl::StrCat("WHERE hash = 'hash", i, "'");
      if (random() % 3 == 0) Run(part, absl::StrCat("DELETE FROM results ", of_hash));
      if (random() % 3 == 0) Run(part, absl::StrCat("DELETE FROM points WHERE point = ", i));
      Run(part, absl::StrCat("UPDATE results SET wall_s = ", random() % 5, " ", of_hash));
      if (random() % 3 == 0) {
        Run(part, absl::StrCat("UPDATE results SET version = '0.0.9', "
                               "operations = 7 ",
                               of_hash));
      }
      if (random() % 3 == 0) {
        Run(part,
            absl::StrCat("UPDATE results SET status = '", random() % 2 == 0 ? "failed" : "timeout",
                         "', error = 'error ", random() % 3, "' ", of_hash));
      }
    }
    Run(part, "COMMIT");
    return Path(name);
  }

  // Columns of results: hash, status, error, ...; version and the next three are the last.
  static bool Wins(const std::vector<SqlValue>& a, const std::vector<SqlValue>& b) {
    const auto definite = [](const std::vector<SqlValue>& row) {
      return ToText(row[1]) == "ok" || ToText(row[1]) == "impossible";
    };
    const auto version = [](const std::vector<SqlValue>& row) {
      return ToText(row[row.size() - 4]);
    };
    if (definite(a) != definite(b)) return definite(a);
    if (version(a) != version(b)) return OlderVersion(version(b), version(a));
    return a < b;
  }

  static std::map<std::string, std::vector<SqlValue>> SlowResults(
      const std::vector<std::string>& parts) {
    std::map<std::string, std::vector<SqlValue>> results;
    for (const std::string& part : parts) {
      for (const auto& row : Query(part, "SELECT * FROM results")) {
        const auto [at, added] = results.emplace(ToText(row[0]), row);
        if (!added && Wins(row, at->second)) at->second = row;
      }
    }
    return results;
  }
};

TEST_F(RandomMergeTest, IsTheUnionByTheRule) {
  std::mt19937 random(20260730);
  for (int trial = 0; trial < 10; ++trial) {
    std::vector<std::string> parts;
    parts.reserve(4);
    for (int i = 0; i < 4; ++i) parts.push_back(Part(absl::StrCat(trial, ".", i), random));
    const std::string out = Path(absl::StrCat(trial, ".out"));
    const auto summary = MergeSweeps(out, parts, true);
    ASSERT_TRUE(summary.ok()) << summary.status();
    const auto slow = SlowResults(parts);
    Rows expected;
    expected.reserve(slow.size());
    for (const auto& [hash, row] : slow) expected.push_back(row);
    std::map<std::string, std::vector<SqlValue>> points;
    for (const std::string& part : parts) {
      for (const auto& row : Query(part, "SELECT * FROM points")) points[ToText(row[0])] = row;
    }
    EXPECT_EQ(Query(out, "SELECT * FROM results ORDER BY hash"), expected);
    EXPECT_EQ(summary->counts.all(), std::ssize(points));
    for (const auto& row : Query(out, "SELECT * FROM points")) {
      EXPECT_EQ(row, points[ToText(row[0])]);
    }
    const std::string steps = Path(absl::StrCat(trial, ".steps"));
    std::shuffle(parts.begin(), parts.end(), random);
    ASSERT_TRUE(MergeSweeps(steps, {parts[0], parts[1]}, true).ok());
    ASSERT_TRUE(MergeSweeps(steps, {parts[2]}, true).ok());
    ASSERT_TRUE(MergeSweeps(steps, {parts[3], parts[1]}, true).ok());
    EXPECT_EQ(Contents(steps), Contents(out));
  }
}

}  // namespace
}  // namespace optimus::sweep
