#pragma once
// Rows of a published data set: columns with a kind, every cell checked when the file is read.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/csv.h"

namespace optimus::validation {

enum class ColumnKind : std::uint8_t {
  kCount,   // a whole number from 1 to 2^31 - 1
  kBytes,   // a whole number from 1 to 2^50
  kNumber,  // from 1e-12 to 1e12
  kShare,   // at least 0, less than 1
  kText,
};

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kCount;
  bool may_be_empty = false;
  bool may_be_zero = false;               // kNumber: 0 as well
  bool optional = false;                  // the file need not have it: then all its cells are empty
  std::vector<std::string> allowed = {};  // kText: what a cell may say; empty: anything

  Column OrEmpty() && {
    may_be_empty = true;
    return std::move(*this);
  }
  Column OrZero() && {
    may_be_zero = true;
    return std::move(*this);
  }
  Column OrAbsent() && {
    optional = may_be_empty = true;
    return std::move(*this);
  }
};
inline Column CountColumn(const char* name) { return {.name = name}; }
inline Column BytesColumn(const char* name) { return {.name = name, .kind = ColumnKind::kBytes}; }
inline Column NumberColumn(const char* name) { return {.name = name, .kind = ColumnKind::kNumber}; }
inline Column ShareColumn(const char* name) { return {.name = name, .kind = ColumnKind::kShare}; }
inline Column TextColumn(const char* name, std::vector<std::string> allowed = {}) {
  return {.name = name, .kind = ColumnKind::kText, .allowed = std::move(allowed)};
}

class Row {
 public:
  Row(std::shared_ptr<const std::vector<Column>> columns, std::string path, CsvRow cells)
      : columns_(std::move(columns)), path_(std::move(path)), cells_(std::move(cells)) {}

  int line() const { return cells_.line; }
  // Of a column of the data set that is of this kind and not empty in this row.
  std::int64_t whole(const std::string& column) const;  // kCount, kBytes
  int count(const std::string& column) const { return static_cast<int>(whole(column)); }
  double number(const std::string& column) const;  // every kind but kText
  // Of any column; "" where it is empty.
  const std::string& text(const std::string& column) const;
  bool has(const std::string& column) const { return !text(column).empty(); }
  // Whether the data set has such a column.
  bool knows(const std::string& column) const;

  // INVALID_ARGUMENT "path:line: column NAME: problem".
  absl::Status Error(const std::string& column, const std::string& problem) const;
  // The same error with "path:line: " before it, unless it has that already.
  absl::Status AtLine(const absl::Status& status) const;

 private:
  std::shared_ptr<const std::vector<Column>> columns_;
  std::string path_;
  CsvRow cells_;
};

// Whether the table has every column that is not optional, and no other than these.
bool HasColumns(const CsvTable& table, const std::vector<Column>& columns);

// The table's rows. INVALID_ARGUMENT "path:line: column NAME: ..." for a cell that does not hold
// what its column says, "path:line: ..." for other columns; a table without rows is refused.
absl::StatusOr<std::vector<Row>> ReadRows(CsvTable table, const std::vector<Column>& columns);

}  // namespace optimus::validation
