#include "validation/published/row.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing_folder.h"
#include "gmock/gmock.h"

namespace optimus::validation {
namespace {

using ::testing::HasSubstr;

std::vector<Column> Columns() {
  return {
      CountColumn("gpus"),           BytesColumn("bytes"),           NumberColumn("ms").OrEmpty(),
      ShareColumn("rate").OrEmpty(), TextColumn("kind", {"a", "b"}), TextColumn("note").OrAbsent()};
}

absl::StatusOr<std::vector<Row>> Read(const std::string& content) {
  const TestingFolder folder;
  const std::string path = folder.path() / "row_test.csv";
  std::ofstream(path) << content;
  auto table = ReadCsvTable(path);
  if (!table.ok()) return table.status();
  return ReadRows(*std::move(table), Columns());
}

TEST(Rows, AreReadInAnyOrderOfColumns) {
  const auto rows =
      Read("kind,rate,ms,bytes,gpus\n# c\na,0,1.5,1099511627776,8\nb,0.25,,1,2147483647\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2U);
  const Row& first = (*rows)[0];
  EXPECT_EQ(first.line(), 3);
  EXPECT_EQ(first.count("gpus"), 8);
  EXPECT_EQ(first.whole("bytes"), std::int64_t{1} << 40);
  EXPECT_EQ(first.number("ms"), 1.5);
  EXPECT_EQ(first.number("rate"), 0);
  EXPECT_EQ(first.text("kind"), "a");
  EXPECT_FALSE(first.has("note"));
  EXPECT_FALSE((*rows)[1].has("ms"));
  EXPECT_TRUE(first.knows("gpus"));
  EXPECT_FALSE(first.knows("cpus"));
}

struct BadCell {
  const char* row;  // gpus,bytes,ms,rate,kind
  const char* problem;
};
class BadCells : public ::testing::TestWithParam<BadCell> {};

TEST_P(BadCells, AreNamedByFileLineAndColumn) {
  const auto rows = Read(std::string("gpus,bytes,ms,rate,kind\n8,1,1,0,a\n") + GetParam().row);
  ASSERT_FALSE(rows.ok());
  EXPECT_THAT(std::string(rows.status().message()), HasSubstr("row_test.csv:3: column "));
  EXPECT_THAT(std::string(rows.status().message()), HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    Cells, BadCells,
    ::testing::Values(BadCell{",1,1,0,a", "column gpus: is empty"},
                      BadCell{"0,1,1,0,a", "column gpus: \"0\" is no whole number"},
                      BadCell{"-8,1,1,0,a", "column gpus"}, BadCell{"8.5,1,1,0,a", "column gpus"},
                      BadCell{"2147483648,1,1,0,a", "from 1 to 2147483647"},
                      BadCell{"8,1e3,1,0,a", "column bytes: \"1e3\""},
                      BadCell{"8,1,zero,0,a",
                              "column ms: \"zero\" is no number from 1e-12 to 1e+12"},
                      BadCell{"8,1,0,0,a", "column ms"}, BadCell{"8,1,nan,0,a", "column ms"},
                      BadCell{"8,1,inf,0,a", "column ms"}, BadCell{"8,1,1e-300,0,a", "column ms"},
                      BadCell{"8,1,1e13,0,a", "column ms"}, BadCell{"8,1,-1,0,a", "column ms"},
                      BadCell{"8,1,0x10,0,a", "column ms"},
                      BadCell{"8,1,1,1,a", "column rate: \"1\" is no share"},
                      BadCell{"8,1,1,-0.1,a", "column rate"},
                      BadCell{"8,1,1,0,c", "column kind: \"c\" is not known; one of a, b"},
                      BadCell{"8,1,1,0,", "column kind: is empty"}));

TEST(Rows, AnErrorIsPlacedOnce) {
  const auto rows = Read("gpus,bytes,ms,rate,kind\n8,1,1,0,a\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  const Row& row = rows->front();
  const absl::Status placed = row.Error("ms", "is odd; use another");
  EXPECT_THAT(std::string(placed.message()),
              ::testing::EndsWith("row_test.csv:2: column ms: is odd; use another"));
  EXPECT_EQ(row.AtLine(placed), placed);
  // Not by what a message from elsewhere happens to hold.
  EXPECT_THAT(std::string(row.AtLine(absl::InternalError("a: column b: c")).message()),
              ::testing::EndsWith("row_test.csv:2: a: column b: c"));
}

TEST(Rows, OtherColumnsAreRefused) {
  const auto unknown = Read("gpus,bytes,ms,rate,kind,color\n8,1,1,0,a,red\n");
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr(":1: unknown column \"color\""));
  const auto missing = Read("gpus,bytes,ms,rate\n8,1,1,0\n");
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(":1: column \"kind\" is missing"));
}

TEST(Rows, ATableWithoutRowsIsRefused) {
  const auto rows = Read("gpus,bytes,ms,rate,kind\n");
  EXPECT_THAT(std::string(rows.status().message()), HasSubstr("has no row"));
}

}  // namespace
}  // namespace optimus::validation
