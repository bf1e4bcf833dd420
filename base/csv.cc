#include "base/csv.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optimus {
namespace {

std::string Stripped(absl::string_view text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

// The field that starts at `at`, which is moved behind it. INVALID_ARGUMENT: what is wrong.
absl::StatusOr<std::string> QuotedField(const std::string& line, std::size_t& at) {
  std::string field;
  for (++at; at < line.size(); ++at) {
    if (line[at] != '"') {
      field += line[at];
    } else if (at + 1 < line.size() && line[at + 1] == '"') {
      field += line[++at];
    } else {
      ++at;
      while (at < line.size() && absl::ascii_isspace(static_cast<unsigned char>(line[at]))) ++at;
      if (at < line.size() && line[at] != ',') {
        return absl::InvalidArgumentError("text after a closing quote; expected a comma");
      }
      return field;
    }
  }
  return absl::InvalidArgumentError("a quote does not end on its line");
}

absl::StatusOr<std::vector<std::string>> SplitLine(const std::string& line) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (true) {
    std::size_t begin = at;
    while (begin < line.size() && line[begin] == ' ') ++begin;
    if (begin < line.size() && line[begin] == '"') {
      at = begin;
      OPTIMUS_ASSIGN_OR_RETURN(std::string field, QuotedField(line, at));
      fields.push_back(std::move(field));
    } else {
      at = std::min(line.find(',', at), line.size());
      fields.push_back(Stripped(absl::string_view(line).substr(begin, at - std::min(begin, at))));
    }
    if (at >= line.size()) return fields;
    ++at;  // the comma
  }
}

constexpr std::size_t kAbsent = std::numeric_limits<std::size_t>::max();

absl::Status CheckHeader(const CsvTable& table) {
  const std::vector<std::string>& names = table.header.fields;
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1) {
      return table.file.Error(table.header, absl::StrCat("column \"", name, "\" is there twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFields(const CsvTable& table, const CsvRow& row) {
  const std::vector<std::string>& names = table.header.fields;
  if (row.fields.size() == names.size()) return absl::OkStatus();
  return table.file.Error(
      row, absl::StrCat("has ", row.fields.size(), " fields, expected ", names.size(), ": ",
                        absl::StrJoin(names, ", "), "; put text with commas in quotes"));
}

// By entry of `columns`, the first `required` of which must be there, its place in the header.
absl::StatusOr<std::vector<std::size_t>> Places(const CsvTable& table,
                                                const std::vector<std::string>& columns,
                                                std::size_t required) {
  const std::vector<std::string>& header = table.header.fields;
  for (const std::string& name : header) {
    if (std::find(columns.begin(), columns.end(), name) != columns.end()) continue;
    return table.file.Error(table.header,
                            absl::StrCat("unknown column \"", name, "\"; the columns are ",
                                         absl::StrJoin(columns, ", ")));
  }
  std::vector<std::size_t> places;
  places.reserve(columns.size());
  for (const std::string& name : columns) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end() && places.size() < required) {
      return table.file.Error(table.header,
                              absl::StrCat("column \"", name, "\" is missing; the columns are ",
                                           absl::StrJoin(columns, ", ")));
    }
    places.push_back(found == header.end() ? kAbsent
                                           : static_cast<std::size_t>(found - header.begin()));
  }
  return places;
}

std::vector<std::string> Picked(const std::vector<std::string>& fields,
                                const std::vector<std::size_t>& places) {
  std::vector<std::string> ordered;
  ordered.reserve(places.size());
  for (const std::size_t place : places) {
    ordered.push_back(place == kAbsent ? "" : fields[place]);
  }
  return ordered;
}

}  // namespace

absl::Status CsvFile::Error(const CsvRow& row, const std::string& problem) const {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", row.line, ": ", problem));
}

absl::StatusOr<CsvTable> ReadCsvTable(const std::string& path) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  CsvTable table;
  table.file.path = path;
  CsvRow row;
  absl::string_view rest = content;
  if (absl::StartsWith(rest, "\xFF\xFE") || absl::StartsWith(rest, "\xFE\xFF")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is UTF-16 text; save it as UTF-8"));
  }
  // Spreadsheets mark UTF-8 so.
  absl::ConsumePrefix(&rest, "\xEF\xBB\xBF");
  const char end_of_line = absl::StrContains(rest, '\n') ? '\n' : '\r';
  for (const absl::string_view line : absl::StrSplit(rest, end_of_line)) {
    ++row.line;
    const std::string text = Stripped(line);
    if (text.empty() || absl::StartsWith(text, "#")) continue;
    absl::StatusOr<std::vector<std::string>> fields = SplitLine(text);
    if (!fields.ok()) return table.file.Error(row, std::string(fields.status().message()));
    row.fields = *std::move(fields);
    if (table.header.line == 0) {
      table.header = row;
      OPTIMUS_RETURN_IF_ERROR(CheckHeader(table));
      continue;
    }
    OPTIMUS_RETURN_IF_ERROR(CheckFields(table, row));
    table.file.rows.push_back(row);
  }
  if (table.header.line > 0) return table;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has no header; its first line must name the columns"));
}

absl::StatusOr<CsvFile> InOrder(CsvTable table, const std::vector<std::string>& required,
                                const std::vector<std::string>& optional) {
  std::vector<std::string> columns = required;
  columns.insert(columns.end(), optional.begin(), optional.end());
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<std::size_t> places,
                           Places(table, columns, required.size()));
  for (CsvRow& row : table.file.rows) row.fields = Picked(row.fields, places);
  return std::move(table.file);
}

absl::StatusOr<CsvFile> ReadCsv(const std::string& path, const std::vector<std::string>& columns,
                                const std::vector<std::string>& optional) {
  OPTIMUS_ASSIGN_OR_RETURN(CsvTable table, ReadCsvTable(path));
  return InOrder(std::move(table), columns, optional);
}

}  // namespace optimus
