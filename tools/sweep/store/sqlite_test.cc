#include "tools/sweep/store/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "base/testing_folder.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

TEST(SqliteTest, ValuesComeBackAsTheyWere) {
  const Database database = Database::InMemory().value();
  ASSERT_TRUE(database.Execute("CREATE TABLE t(a, b, c, d)").ok());
  const std::vector<SqlValue> row = {std::int64_t{-7}, 0.1,
                                     "it's \"x\"" + std::string(1, '\0') + "y", std::monostate{}};
  ASSERT_TRUE(database.Prepare("INSERT INTO t VALUES(?1, ?2, ?3, ?4)")->Run(row).ok());
  const SqlTable table = database.Query("SELECT * FROM t").value();
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b", "c", "d"}));
  ASSERT_EQ(table.rows.size(), 1);
  EXPECT_EQ(table.rows[0], row);
}

TEST(SqliteTest, TextIsShortAndExact) {
  EXPECT_EQ(ToText(0.1), "0.1");
  EXPECT_EQ(ToText(std::int64_t{12}), "12");
  EXPECT_EQ(ToText(std::monostate{}), "");
  EXPECT_EQ(std::stod(ToText(1.0 / 3)), 1.0 / 3);
}

TEST(SqliteTest, AMisspeltColumnIsNoText) {
  const Database database = Database::InMemory().value();
  ASSERT_TRUE(database.Execute("CREATE TABLE t(a)").ok());
  const absl::Status status = database.Query("SELECT * FROM t WHERE \"b\" = 1").status();
  EXPECT_EQ(status, absl::InvalidArgumentError("no such column: b"));
}

TEST(SqliteTest, OneStatementOnly) {
  const Database database = Database::InMemory().value();
  EXPECT_TRUE(absl::IsInvalidArgument(database.Prepare("SELECT 1; SELECT 2").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(database.Prepare(" ").status()));
  EXPECT_TRUE(database.Prepare("SELECT 1; ").ok());
}

TEST(SqliteTest, FilesThatAreNoDatabase) {
  const TestingFolder folder;
  const std::string path = (folder.path() / "x.sqlite").string();
  EXPECT_TRUE(absl::IsNotFound(Database::Open(path, Database::Mode::kReadOnly).status()));
  std::ofstream(path) << "this is no database, and long enough to see that it is none: " << 1;
  const absl::Status status = Database::Open(path, Database::Mode::kReadWrite).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(SqliteTest, OnlyFilesAreOpened) {
  const TestingFolder folder;
  EXPECT_THAT(
      std::string(Database::Open(folder.path(), Database::Mode::kReadOnly).status().message()),
      HasSubstr("is a folder"));
  EXPECT_THAT(std::string(Database::Open("/dev/null", Database::Mode::kCreate).status().message()),
              HasSubstr("no regular file"));
  EXPECT_TRUE(absl::IsNotFound(Database::Open(":memory:", Database::Mode::kReadOnly).status()));
  EXPECT_TRUE(
      absl::IsNotFound(Database::Open("file:x?mode=memory", Database::Mode::kReadOnly).status()));
}

TEST(SqliteTest, OnlyComputing) {
  Database database = Database::InMemory().value();
  database.OnlyCompute();
  EXPECT_EQ(database.Query("SELECT max(2, 3) + length('abc')")->rows[0][0],
            SqlValue(std::int64_t{6}));
  for (const char* refused :
       {"SELECT random()", "SELECT RandomBlob(4)", "SELECT datetime('now')",
        "SELECT CURRENT_TIMESTAMP", "CREATE TABLE t(a)", "ATTACH 'x' AS y", "PRAGMA user_version",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c",
        "SELECT hex(zeroblob(400000000))", "SELECT zeroblob(3000000000)",
        "SELECT load_extension('x')"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(database.Query(refused).status())) << refused;
  }
}

TEST(SqliteTest, WhatTakesTooLongEnds) {
  Database database = Database::InMemory().value();
  database.LimitTime(0.05);
  const absl::Status status =
      database
          .Query(
              "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
              "SELECT max(x) FROM c")
          .status();
  EXPECT_EQ(status, absl::InvalidArgumentError("takes too long"));
}

TEST(SqliteTest, AFullDatabaseSaysSo) {
  const Database database = Database::InMemory().value();
  ASSERT_TRUE(database.Execute("PRAGMA max_page_count = 3; CREATE TABLE t(a)").ok());
  const absl::Status status =
      database.Prepare("INSERT INTO t VALUES(?1)")->Run({std::string(100000, 'x')});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
}

}  // namespace
}  // namespace optimus::sweep
