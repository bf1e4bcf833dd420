#include "tools/sweep/store/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tools/sweep/store/testing_sweep.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

Database TwoPoints() {
  return MakeTestingSweep(
             ":memory:", {TestingAxis("tp", "INTEGER"), TestingAxis("layout", "TEXT")},
             {{{std::int64_t{4}, std::string("BALANCED")}, {{"iteration_time_s", 5.5}}},
              {{std::int64_t{8}, std::string("EQUAL_LAYERS")}, {}, kStatusImpossible, "no"}})
      .value();
}

TEST(SchemaTest, WhatIsWrittenIsReadAgain) {
  const Database database = TwoPoints();
  const About about = ReadAbout(database).value();
  EXPECT_EQ(about.sweep_name, "a_test");
  EXPECT_EQ(about.points, 2);
  ASSERT_EQ(about.columns.size(), 2 + MetricColumns().size() + ConditionColumns().size());
  EXPECT_EQ(about.columns[0].kind, ColumnKind::kAxis);
  EXPECT_EQ(about.columns[1].name, "layout");
  EXPECT_EQ(about.Find("iteration_time_s")->unit, "s");
  EXPECT_EQ(about.Find("pq"), nullptr);
  const SqlTable table =
      database.Query("SELECT point, tp, layout, iteration_time_s, status, error FROM sweep")
          .value();
  ASSERT_EQ(table.rows.size(), 2);
  EXPECT_EQ(table.rows[0],
            (std::vector<SqlValue>{std::int64_t{0}, std::int64_t{4}, std::string("BALANCED"), 5.5,
                                   std::string("ok"), std::string()}));
  EXPECT_EQ(ToText(table.rows[1][4]), "impossible");
}

TEST(SchemaTest, ColumnsHaveTheirType) {
  const Database database = TwoPoints();
  EXPECT_FALSE(database.Execute("UPDATE points SET tp = 'eight'").ok());
  EXPECT_TRUE(database.Execute("UPDATE points SET tp = 16").ok());
}

TEST(SchemaTest, NoNameIsThereTwice) {
  std::set<std::string> names = {"point", "hash", "status", "error"};
  for (const auto& columns : {MetricColumns(), ConditionColumns()}) {
    for (const Column& column : columns) EXPECT_TRUE(names.insert(column.name).second);
  }
}

TEST(SchemaTest, OtherDatabasesAreRefused) {
  const Database other = Database::InMemory().value();
  EXPECT_THAT(std::string(ReadAbout(other).status().message()),
              HasSubstr("not a database of optimus sweep"));
  const Database newer = TwoPoints();
  ASSERT_TRUE(newer.Execute("UPDATE about SET value = '2' WHERE name = 'schema_version'").ok());
  EXPECT_THAT(std::string(ReadAbout(newer).status().message()), HasSubstr("schema_version 2"));
}

}  // namespace
}  // namespace optimus::sweep
