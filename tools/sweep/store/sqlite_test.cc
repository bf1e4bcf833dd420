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
  const std::vector<SqlValue> row = {std::int64_t{-7}, 0.1, "it's \"x\"" + std::string(1, '\0') + "y",
                                     std::monostate{}};
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

TEST(SqliteTest, AFullDatabaseSaysSo) {
  const Database database = Database::InMemory().value();
  ASSERT_TRUE(database.Execute("PRAGMA max_page_count = 3; CREATE TABLE t(a)").ok());
  const absl::Status status =
      database.Prepare("INSERT INTO t VALUES(?1)")->Run({std::string(100000, 'x')});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
}

}  // namespace
}  // namespace optimus::sweep
