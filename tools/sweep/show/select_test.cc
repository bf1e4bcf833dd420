#include "tools/sweep/show/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tools/sweep/show/testing_show.h"

namespace optimus::sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SelectTest : public ::testing::Test {
 protected:
  std::vector<Column> Columns(const std::vector<std::string>& names) const {
    return FindColumns(about_, "--columns", names).value();
  }
  Aim AimOf(const std::string& text) const {
    return ParseAim(about_, "--sort", text, false).value();
  }

  Database database_ = MakeTestingPlans(":memory:", {512, 3072}).value();
  About about_ = ReadAbout(database_).value();
};

TEST_F(SelectTest, AMisspeltColumnListsThoseThereAre) {
  EXPECT_THAT(std::string(FindColumn(about_, "--x", "gpu").status().message()),
              AllOf(StartsWith("--x: no column \"gpu\"; columns: strategy, gpus, tp, "),
                    HasSubstr("iteration_time_s, "), HasSubstr("point, status")));
  EXPECT_THAT(std::string(FindNumber(about_, "--x", "strategy").status().message()),
              HasSubstr("is text"));
  EXPECT_TRUE(FindColumn(about_, "--x", "point").ok());
}

TEST_F(SelectTest, AimsGoByTheColumnUnlessTold) {
  EXPECT_FALSE(AimOf("iteration_time_s").high);
  EXPECT_TRUE(AimOf("-iteration_time_s").high);
  EXPECT_TRUE(AimOf("mfu_percent").high);
  EXPECT_FALSE(AimOf("+mfu_percent").high);
  EXPECT_EQ(AimOf("+mfu_percent").column.name, "mfu_percent");
  EXPECT_THAT(std::string(ParseAim(about_, "--pareto", "gpus", true).status().message()),
              HasSubstr("write -gpus where high is better"));
  EXPECT_FALSE(ParseAim(about_, "--pareto", "+gpus", true)->high);
}

TEST_F(SelectTest, WhereSaysWhatSqliteSays) {
  const auto message = [&](const std::string& where) {
    return std::string(CheckWhere(database_, about_, {where, false}).message());
  };
  EXPECT_THAT(message("pq = 3"), StartsWith("--where: no such column: pq; columns: strategy, "));
  EXPECT_THAT(message("tp ="), HasSubstr("syntax error"));
  EXPECT_THAT(message("\"OPTIMUS\" = strategy"), HasSubstr("no such column: OPTIMUS"));
  EXPECT_THAT(message("1) OR (1"), StartsWith("--where: "));
  EXPECT_THAT(message("1) FROM sweep; DELETE FROM points --"), StartsWith("--where: "));
  EXPECT_EQ(message("tp = 8 -- and a comment"), "");
  EXPECT_EQ(message(""), "");
}

// Every row of the database, for twins.
struct Row {
  std::int64_t point = 0;
  std::string strategy;
  std::int64_t tp = 0;
  double time = 0;
};

std::vector<Row> Fitting(const Database& database) {
  std::vector<Row> rows;
  const SqlTable table = database
                             .Query(
                                 "SELECT point, strategy, tp, iteration_time_s, status, fits "
                                 "FROM sweep ORDER BY point")
                             .value();
  for (const auto& row : table.rows) {
    if (ToText(row[4]) != "ok" || ToText(row[5]) != "1") continue;
    rows.push_back({std::get<std::int64_t>(row[0]), ToText(row[1]), std::get<std::int64_t>(row[2]),
                    std::get<double>(row[3])});
  }
  return rows;
}

TEST_F(SelectTest, TheBestAreThoseOfASort) {
  std::vector<Row> rows = Fitting(database_);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time < b.time; });
  const SqlTable table =
      BestRows(database_, Columns({"point"}), {}, AimOf("iteration_time_s"), 12).value();
  ASSERT_EQ(table.rows.size(), 12);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(std::get<std::int64_t>(table.rows[i][0]), rows[i].point);
  }
  EXPECT_EQ(BestRows(database_, Columns({"point"}), {}, AimOf("tp"), 0)->rows.size(), rows.size());
}

TEST_F(SelectTest, TiesGoToTheLowerNumber) {
  const SqlTable table = BestRows(database_, Columns({"point"}), {}, AimOf("-tp"), 3).value();
  std::vector<std::int64_t> expected;
  for (const Row& row : Fitting(database_)) {
    if (row.tp == 8) expected.push_back(row.point);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(std::get<std::int64_t>(table.rows[i][0]), expected[i]);
  }
}

TEST_F(SelectTest, TheBestOfGroupsIsThatOfALoop) {
  std::map<std::pair<std::string, std::int64_t>, std::pair<Row, std::int64_t>> best;
  for (const Row& row : Fitting(database_)) {
    auto& [kept, count] = best[{row.strategy, row.tp}];
    if (count == 0 || row.time < kept.time) kept = row;
    ++count;
  }
  const SqlTable table = BestOfGroups(database_, Columns({"strategy", "tp"}),
                                      Columns({"point", "tp"}), {}, AimOf("iteration_time_s"))
                             .value();
  EXPECT_EQ(table.columns, (std::vector<std::string>{"strategy", "tp", "points", "point"}));
  ASSERT_EQ(table.rows.size(), best.size());
  std::size_t i = 0;
  for (const auto& [key, value] : best) {
    const std::vector<SqlValue> expected = {key.first, key.second, value.second, value.first.point};
    EXPECT_EQ(table.rows[i++], expected);
  }
}

TEST_F(SelectTest, PlansThatDoNotFitAreOnlyThereWhenAsked) {
  const auto count = [&](const Filter& filter) {
    return BestRows(database_, Columns({"point"}), filter, AimOf("tp"), 0)->rows.size();
  };
  EXPECT_EQ(count({"", false}), Fitting(database_).size());
  EXPECT_GT(count({"", true}), count({"", false}));
  EXPECT_EQ(count({"fits = 0", false}), 0);
  EXPECT_EQ(count({"fits = 0", true}), count({"", true}) - count({"", false}));
}

}  // namespace
}  // namespace optimus::sweep
