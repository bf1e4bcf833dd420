#include "tools/sweep/show/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/csv.h"
#include "base/testing_folder.h"
#include "tools/sweep/store/testing_sweep.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CsvTest, QuotesWhatNeedsIt) {
  const SqlTable table{{"a", "b,c"},
                       {{std::string("say \"no\""), 0.1},
                        {std::monostate{}, std::string("two\nlines")},
                        {std::string(" x"), std::int64_t{-3}}}};
  EXPECT_EQ(ToCsv(table),
            "a,\"b,c\"\n"
            "\"say \"\"no\"\"\",0.1\n"
            ",\"two\nlines\"\n"
            "\" x\",-3\n");
}

Database ThreePoints(const std::string& path) {
  return MakeTestingSweep(
             path, {TestingAxis("tp", "INTEGER"), TestingAxis("layout", "TEXT")},
             {{{std::int64_t{4}, std::string("A")}, {{"iteration_time_s", 1.0 / 3}}},
              {{std::int64_t{8}, std::string("B")}, {}, kStatusImpossible, "tp: 8, not 4"}})
      .value();
}

TEST(CsvTest, TheWholeTableByPoint) {
  const Database database = ThreePoints(":memory:");
  ASSERT_TRUE(database.Execute("INSERT INTO points VALUES(2, 'later', 16, 'C')").ok());
  const std::string csv = TableCsv(database, ReadAbout(database).value()).value();
  EXPECT_THAT(csv, StartsWith("point,tp,layout,status,error,iteration_time_s,mfu_percent,"));
  EXPECT_THAT(csv, HasSubstr("\n0,4,A,ok,,0.3333333333333333,"));
  EXPECT_THAT(csv, HasSubstr("\n1,8,B,impossible,\"tp: 8, not 4\","));
  EXPECT_THAT(csv, HasSubstr("\n2,16,C,,,"));
  EXPECT_THAT(csv, HasSubstr(",version,profile_hash\n"));
  EXPECT_THAT(csv, ::testing::Not(HasSubstr("wall_s")));
}

TEST(CsvTest, OurOwnReaderReadsIt) {
  const TestingFolder folder;
  const Database database = ThreePoints(":memory:");
  const std::string path = (folder.path() / "t.csv").string();
  std::ofstream(path) << TableCsv(database, ReadAbout(database).value()).value();
  const CsvTable table = ReadCsvTable(path).value();
  ASSERT_EQ(table.file.rows.size(), 2);
  EXPECT_EQ(table.file.rows[1].fields[4], "tp: 8, not 4");
  EXPECT_EQ(table.header.fields, TableColumns(ReadAbout(database).value()));
}

}  // namespace
}  // namespace optimus::sweep
