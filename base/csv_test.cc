#include "base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/testing_folder.h"

namespace optimus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<CsvFile> Read(const std::string& content) {
  const TestingFolder folder;
  const std::string path = folder.path() / "csv_test.csv";
  std::ofstream(path) << content;
  return ReadCsv(path, {"a", "b"});
}

std::string ErrorOf(const std::string& content) {
  const auto file = Read(content);
  EXPECT_FALSE(file.ok()) << content;
  return std::string(file.status().message());
}

TEST(CsvTest, ReadsRowsInTheOrderAskedFor) {
  const auto file = Read("# comment, with a comma\nb,a\n\n2, 1 \n,x\n");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->rows.size(), 2U);
  EXPECT_THAT(file->rows[0].fields, ElementsAre("1", "2"));
  EXPECT_EQ(file->rows[0].line, 4);
  EXPECT_THAT(file->rows[1].fields, ElementsAre("x", ""));
}

TEST(CsvTest, QuotesHoldCommasAndQuotes) {
  const auto file = Read("a,b\r\n\"1,5\",\"say \"\"two\"\"\"\r\n \"\" , \" x \" \n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->rows[0].fields, ElementsAre("1,5", "say \"two\""));
  EXPECT_THAT(file->rows[1].fields, ElementsAre("", " x "));
}

TEST(CsvTest, AsSpreadsheetsSaveThem) {
  for (const char* content : {"\xEF\xBB\xBF"
                              "b,a\r\n2,1\r\n",
                              "b,a\r2,1\r", "b,a\r\n2,1"}) {
    const auto file = Read(content);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->rows.size(), 1U);
    EXPECT_THAT(file->rows[0].fields, ElementsAre("1", "2"));
    EXPECT_EQ(file->rows[0].line, 2);
  }
  EXPECT_THAT(ErrorOf("\xEF\xBB\xBF# c\na,b\n1\n"), HasSubstr("csv_test.csv:3: has 1 fields"));
  for (const char* mark : {"\xFF\xFE", "\xFE\xFF"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(mark, "a,b\n1,2\n")),
                HasSubstr("csv_test.csv: is UTF-16 text; save it as UTF-8"));
  }
}

TEST(CsvTest, AnErrorNamesItsLine) {
  EXPECT_THAT(ErrorOf("a,b\n1,2\n1,2,3\n"), HasSubstr("csv_test.csv:3: has 3 fields, expected 2"));
  EXPECT_THAT(ErrorOf("a,b\n1\n"), HasSubstr(":2: has 1 fields"));
  EXPECT_THAT(ErrorOf("a,b\n\"1,2\n"), HasSubstr(":2: a quote does not end"));
  EXPECT_THAT(ErrorOf("a,b\n\"1\"x,2\n"), HasSubstr(":2: text after a closing quote"));
  EXPECT_THAT(ErrorOf("\n# c\na,c\n"), HasSubstr(":3: unknown column \"c\""));
  EXPECT_THAT(ErrorOf("a\n"), HasSubstr(":1: column \"b\" is missing"));
  EXPECT_THAT(ErrorOf("a,b,a\n"), HasSubstr(":1: column \"a\" is there twice"));
  EXPECT_THAT(ErrorOf("# only a comment\n"), HasSubstr("has no header"));
}

TEST(CsvTest, AnOptionalColumnMayBeMissing) {
  const TestingFolder folder;
  const std::string path = folder.path() / "csv_optional_test.csv";
  std::ofstream(path) << "a\n1\n";
  auto file = ReadCsv(path, {"a"}, {"c"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->rows[0].fields, ElementsAre("1", ""));
  std::ofstream(path) << "c,a\n2,1\n3\n";
  file = ReadCsv(path, {"a"}, {"c"});
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr(":3: has 1 fields, expected 2: c, a"));
  std::ofstream(path) << "c,a\n2,1\n";
  file = ReadCsv(path, {"a"}, {"c"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->rows[0].fields, ElementsAre("1", "2"));
}

TEST(CsvTest, ATableHasTheColumnsThatItSays) {
  const TestingFolder folder;
  const std::string path = folder.path() / "csv_table_test.csv";
  std::ofstream(path) << "# c\nb,\"x, y\"\n1,2\n";
  const auto table = ReadCsvTable(path);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->header.line, 2);
  EXPECT_THAT(table->header.fields, ElementsAre("b", "x, y"));
  ASSERT_EQ(table->file.rows.size(), 1U);
  EXPECT_EQ(table->file.rows[0].line, 3);
  EXPECT_THAT(table->file.rows[0].fields, ElementsAre("1", "2"));
}

TEST(CsvTest, AMissingFileIsNamed) {
  const auto file = ReadCsv("/nowhere/x.csv", {"a"});
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("/nowhere/x.csv"));
}

}  // namespace
}  // namespace optimus
