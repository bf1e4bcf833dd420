#include "tools/sweep/show/csv.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

// Spaces at an end need quotes too: many readers take them away, ours as well (base/csv.h).
bool NeedsQuotes(const std::string& text) {
  if (text.empty()) return false;
  return text.find_first_of(",\"\r\n") != std::string::npos || text.front() == ' ' ||
         text.back() == ' ' || text.front() == '#';
}

void AppendField(const std::string& text, bool first, std::string& out) {
  if (!first) out.push_back(',');
  if (NeedsQuotes(text)) {
    absl::StrAppend(&out, "\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
  } else {
    absl::StrAppend(&out, text);
  }
}

}  // namespace

std::string ToCsv(const SqlTable& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    AppendField(table.columns[i], i == 0, out);
  }
  out.push_back('\n');
  for (const std::vector<SqlValue>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) AppendField(ToText(row[i]), i == 0, out);
    out.push_back('\n');
  }
  return out;
}

std::vector<std::string> TableColumns(const About& about) {
  std::vector<std::string> names = {"point"};
  const auto append = [&](std::initializer_list<ColumnKind> kinds) {
    for (const Column& column : ColumnsOfKind(about, kinds)) names.push_back(column.name);
  };
  append({ColumnKind::kAxis, ColumnKind::kDerived});
  names.insert(names.end(), {"status", "error"});
  append({ColumnKind::kMetric});
  names.insert(names.end(), {"version", "profile_hash"});
  return names;
}

absl::StatusOr<std::string> TableCsv(const Database& database, const About& about) {
  const std::string columns =
      absl::StrJoin(TableColumns(about), ", ", [](std::string* out, const std::string& name) {
        absl::StrAppend(out, QuoteIdentifier(name));
      });
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable table,
      database.Query(absl::StrCat("SELECT ", columns, " FROM main.sweep ORDER BY point")));
  return ToCsv(table);
}

}  // namespace optimus::sweep
