#pragma once
// Comma-separated files with a header line. Blank lines and lines that start with '#' are skipped;
// fields may stand in double quotes, which end on their line. UTF-8, with or without a byte order
// mark; lines end in "\n", "\r\n" or, all of them, "\r".

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace optimus {

struct CsvRow {
  int line = 0;                     // from 1
  std::vector<std::string> fields;  // without surrounding spaces
};

struct CsvFile {
  std::string path;
  std::vector<CsvRow> rows;
  // "path:line: problem"
  absl::Status Error(const CsvRow& row, const std::string& problem) const;
};

// A file with the columns that it says it has: every row has one field for each of them.
struct CsvTable {
  CsvFile file;
  CsvRow header;
};

// Errors are those of ReadFile, or INVALID_ARGUMENT "path:line: ...": no header, a column that is
// there twice, a row with another number of fields, a quote that does not end; "path: ..." for
// UTF-16.
absl::StatusOr<CsvTable> ReadCsvTable(const std::string& path);

// The same with known columns: fields come in the order of `columns`, whatever their order in the
// file. INVALID_ARGUMENT also where a column is missing or unknown. The fields of `optional`
// columns come after the others, and are empty where the file does not have the column.
absl::StatusOr<CsvFile> ReadCsv(const std::string& path, const std::vector<std::string>& columns,
                                const std::vector<std::string>& optional = {});
// Of a table that was read before.
absl::StatusOr<CsvFile> InOrder(CsvTable table, const std::vector<std::string>& columns,
                                const std::vector<std::string>& optional = {});

}  // namespace optimus
