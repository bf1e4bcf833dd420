#pragma once
// Comma-separated values: a header line with column names, then rows. Fields may be quoted ("" for
// a quote inside); a field does not go over a line's end. Empty lines, and lines that start with
// '#', are comments.

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace optimus::tools {

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

// Fields come in the order of `columns`, whatever their order in the file. Errors are those of
// ReadFile, or INVALID_ARGUMENT "path:line: ...": a column that is missing, unknown or there twice,
// a row with another number of fields, a quote that does not end. The fields of `optional` columns
// come after the others, and are empty where the file does not have the column.
absl::StatusOr<CsvFile> ReadCsv(const std::string& path, const std::vector<std::string>& columns,
                                const std::vector<std::string>& optional = {});

}  // namespace optimus::tools
