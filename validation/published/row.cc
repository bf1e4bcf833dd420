#include "validation/published/row.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optimus::validation {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
// Beyond these no unit of ours makes sense; results stay far from infinity.
constexpr double kLeastNumber = 1e-12;
constexpr double kMostNumber = 1e12;

std::int64_t MostWhole(ColumnKind kind) {
  return kind == ColumnKind::kBytes ? kMostBytes : std::numeric_limits<std::int32_t>::max();
}

std::string CheckWhole(const Column& column, const std::string& text) {
  std::int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= 1 && value <= MostWhole(column.kind)) return "";
  return absl::StrCat("\"", text, "\" is no whole number from 1 to ", MostWhole(column.kind));
}

// Hexadecimal numbers are refused: nobody publishes one.
bool ParseNumber(const std::string& text, double& value) {
  return text.find_first_of("xX") == std::string::npos && absl::SimpleAtod(text, &value) &&
         std::isfinite(value);
}

std::string CheckNumber(const Column& column, const std::string& text) {
  double value = 0;
  const bool parsed = ParseNumber(text, value);
  if (column.kind == ColumnKind::kShare) {
    if (parsed && value >= 0 && value < 1) return "";
    return absl::StrCat("\"", text, "\" is no share: a number of at least 0 and less than 1");
  }
  if (parsed && value >= kLeastNumber && value <= kMostNumber) return "";
  if (parsed && value == 0 && column.may_be_zero) return "";
  return absl::StrCat("\"", text, "\" is no number from ", kLeastNumber, " to ", kMostNumber,
                      column.may_be_zero ? ", nor 0" : "");
}

std::string CheckText(const Column& column, const std::string& text) {
  const std::vector<std::string>& allowed = column.allowed;
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
    return "";
  }
  return absl::StrCat("\"", text, "\" is not known; one of ", absl::StrJoin(allowed, ", "));
}

// What is wrong with the cell, or nothing.
std::string CheckCell(const Column& column, const std::string& text) {
  if (text.empty()) return column.may_be_empty ? "" : "is empty";
  switch (column.kind) {
    case ColumnKind::kCount:
    case ColumnKind::kBytes:
      return CheckWhole(column, text);
    case ColumnKind::kNumber:
    case ColumnKind::kShare:
      return CheckNumber(column, text);
    case ColumnKind::kText:
      break;
  }
  return CheckText(column, text);
}

std::vector<std::string> Names(const std::vector<Column>& columns, bool optional) {
  std::vector<std::string> names;
  for (const Column& column : columns) {
    if (column.optional == optional) names.push_back(column.name);
  }
  return names;
}

}  // namespace

bool Row::knows(const std::string& column) const {
  return std::any_of(columns_->begin(), columns_->end(),
                     [&](const Column& one) { return one.name == column; });
}

const std::string& Row::text(const std::string& column) const {
  for (std::size_t i = 0; i < columns_->size(); ++i) {
    if ((*columns_)[i].name == column) return cells_.fields[i];
  }
  std::abort();  // a data set asks for a column that it does not list
}

std::int64_t Row::whole(const std::string& column) const {
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text(column), &value)) std::abort();
  return value;
}

double Row::number(const std::string& column) const {
  double value = 0;
  if (!ParseNumber(text(column), value)) std::abort();
  return value;
}

absl::Status Row::Error(const std::string& column, const std::string& problem) const {
  return AtLine(absl::InvalidArgumentError(absl::StrCat("column ", column, ": ", problem)));
}

absl::Status Row::AtLine(const absl::Status& status) const {
  const std::string place = absl::StrCat(path_, ":", cells_.line, ": ");
  if (absl::StartsWith(status.message(), place)) return status;
  return absl::Status(status.code(), absl::StrCat(place, status.message()));
}

bool HasColumns(const CsvTable& table, const std::vector<Column>& columns) {
  const std::vector<std::string>& names = table.header.fields;
  const auto in_header = [&](const Column& column) {
    return column.optional || std::find(names.begin(), names.end(), column.name) != names.end();
  };
  const auto is_column = [&](const std::string& name) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const Column& column) { return column.name == name; });
  };
  return std::all_of(columns.begin(), columns.end(), in_header) &&
         std::all_of(names.begin(), names.end(), is_column);
}

absl::StatusOr<std::vector<Row>> ReadRows(CsvTable table, const std::vector<Column>& columns) {
  // The order in which InOrder hands the cells back.
  auto ordered = std::make_shared<std::vector<Column>>(columns);
  std::stable_partition(ordered->begin(), ordered->end(),
                        [](const Column& column) { return !column.optional; });
  OPTIMUS_ASSIGN_OR_RETURN(CsvFile file,
                           InOrder(std::move(table), Names(columns, false), Names(columns, true)));
  if (file.rows.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": has no row below its header"));
  }
  std::vector<Row> rows;
  rows.reserve(file.rows.size());
  for (CsvRow& cells : file.rows) {
    Row row(ordered, file.path, std::move(cells));
    for (const Column& column : *ordered) {
      const std::string problem = CheckCell(column, row.text(column.name));
      if (!problem.empty()) return row.Error(column.name, problem);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace optimus::validation
