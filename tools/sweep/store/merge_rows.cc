#include "tools/sweep/store/merge_rows.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

// The results that another run of the same version must repeat.
constexpr char kDefinite[] = "status IN ('ok', 'impossible')";

// Differ from run to run (schema.h).
bool ByChance(const std::string& column) {
  return column == "wall_s" || column == "peak_memory_mib";
}

std::string Quoted(const std::vector<std::string>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, QuoteIdentifier(name));
  });
}

std::vector<std::string> With(std::vector<std::string> names, const std::vector<Column>& columns) {
  names.reserve(names.size() + columns.size());
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

// A value in a message, which may be a whole report.
std::string Shown(const SqlValue& value) {
  constexpr std::size_t kMost = 80;
  const std::string text = ToText(value);
  if (text.empty()) return "nothing";
  return text.size() <= kMost ? text : absl::StrCat(text.substr(0, kMost), "...");
}

// The rows of `table` of source number ?1 and on, with the table's own columns.
std::string InsertSql(const std::string& table, const std::vector<std::string>& columns) {
  std::string parameters;
  for (std::size_t i = 0; i < columns.size(); ++i) absl::StrAppend(&parameters, ", ?", i + 2);
  return absl::StrCat("INSERT INTO temp.all_", table, "(source, ", Quoted(columns), ") VALUES(?1",
                      parameters, ")");
}

}  // namespace

bool OlderVersion(const std::string& a, const std::string& b) {
  const std::vector<std::string> parts_a = absl::StrSplit(a, '.');
  const std::vector<std::string> parts_b = absl::StrSplit(b, '.');
  for (std::size_t i = 0; i < std::min(parts_a.size(), parts_b.size()); ++i) {
    std::int64_t number_a = 0;
    std::int64_t number_b = 0;
    const bool numbers =
        absl::SimpleAtoi(parts_a[i], &number_a) && absl::SimpleAtoi(parts_b[i], &number_b);
    if (numbers && number_a != number_b) return number_a < number_b;
    if (!numbers && parts_a[i] != parts_b[i]) return parts_a[i] < parts_b[i];
  }
  if (parts_a.size() != parts_b.size()) return parts_a.size() < parts_b.size();
  return a < b;  // "1.0" and "1.00": some order, always the same
}

absl::StatusOr<MergeRows> MergeRows::Make(const Database& out, const About& about) {
  OPTIMUS_RETURN_IF_ERROR(
      out.Execute("CREATE TEMP TABLE all_points AS "
                  "SELECT 0 AS source, * FROM main.points LIMIT 0;"
                  "CREATE TEMP TABLE all_results AS "
                  "SELECT 0 AS source, * FROM main.results LIMIT 0;"
                  "CREATE TEMP TABLE newness(version TEXT PRIMARY KEY, place INTEGER)"));
  return MergeRows(out, ColumnsOfKind(about, {ColumnKind::kAxis, ColumnKind::kDerived}),
                   ColumnsOfKind(about, {ColumnKind::kMetric, ColumnKind::kCondition}));
}

std::vector<std::string> MergeRows::PointColumns() const { return With({"point", "hash"}, axes_); }

std::vector<std::string> MergeRows::ResultColumns() const {
  return With({"hash", "status", "error"}, results_);
}

std::vector<std::string> MergeRows::Determined() const {
  std::vector<std::string> columns = ResultColumns();
  columns.erase(std::remove_if(columns.begin(), columns.end(), ByChance), columns.end());
  return columns;
}

absl::Status MergeRows::Copy(const Database& source, const std::string& table,
                             const std::vector<std::string>& columns) const {
  OPTIMUS_ASSIGN_OR_RETURN(
      Statement read, source.Prepare(absl::StrCat("SELECT ", Quoted(columns), " FROM ", table)));
  OPTIMUS_ASSIGN_OR_RETURN(Statement add, out_->Prepare(InsertSql(table, columns)));
  std::vector<SqlValue> values(columns.size() + 1);
  values[0] = static_cast<std::int64_t>(files_.size());
  for (;;) {
    OPTIMUS_ASSIGN_OR_RETURN(const bool row, read.Step());
    if (!row) return absl::OkStatus();
    for (int i = 0; i < read.columns(); ++i) {
      values[static_cast<std::size_t>(i) + 1] = read.Value(i);
    }
    if (const absl::Status status = add.Run(values); !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("cannot be copied: ", std::string(status.message())));
    }
  }
}

absl::Status MergeRows::AddVersions(const Database& source, const About& about) {
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable found,
      source.Query("SELECT DISTINCT version FROM results WHERE version IS NOT NULL"));
  std::vector<std::string> versions = {about.version};
  versions.reserve(found.rows.size() + 1);
  for (const auto& row : found.rows) versions.push_back(ToText(row[0]));
  for (const std::string& version : versions) {
    const auto place = std::lower_bound(
        versions_.begin(), versions_.end(), version,
        [](const Version& has, const std::string& v) { return OlderVersion(has.version, v); });
    if (place != versions_.end() && place->version == version) continue;
    versions_.insert(place, {version, source.path()});
  }
  return absl::OkStatus();
}

absl::Status MergeRows::Add(const Database& source, const About& about) {
  OPTIMUS_RETURN_IF_ERROR(Copy(source, "points", PointColumns()));
  OPTIMUS_RETURN_IF_ERROR(Copy(source, "results", ResultColumns()));
  OPTIMUS_RETURN_IF_ERROR(AddVersions(source, about));
  files_.push_back(source.path());
  return absl::OkStatus();
}

absl::Status MergeRows::Contradiction(const std::string& what, const std::string& table,
                                      const std::vector<std::string>& columns,
                                      const std::string& condition,
                                      absl::Span<const SqlValue> keys) const {
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable found,
      out_->Query(absl::StrCat("SELECT source, ", Quoted(columns), " FROM temp.all_", table,
                               " WHERE ", condition, " ORDER BY source"),
                  keys));
  for (const auto& row : found.rows) {
    const auto& first = found.rows.front();
    const auto other = std::mismatch(first.begin() + 1, first.end(), row.begin() + 1);
    if (other.first == first.end()) continue;
    const auto file = [&](const std::vector<SqlValue>& of) {
      return files_[static_cast<std::size_t>(std::get<std::int64_t>(of[0]))];
    };
    const auto column = static_cast<std::size_t>(other.first - first.begin() - 1);
    return absl::InvalidArgumentError(absl::StrCat(file(row), ": ", what, " has ", columns[column],
                                                   " ", Shown(*other.second), ", in ", file(first),
                                                   " it has ", Shown(*other.first)));
  }
  return absl::InternalError(absl::StrCat(what, ": no rows that differ"));
}

absl::Status MergeRows::CheckPoints() const {
  const std::vector<std::string> columns = PointColumns();
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable found,
      out_->Query(absl::StrCat("SELECT point FROM (SELECT DISTINCT ", Quoted(columns),
                               " FROM temp.all_points) GROUP BY point HAVING COUNT(*) > 1 "
                               "ORDER BY point LIMIT 1")));
  if (found.rows.empty()) return absl::OkStatus();
  const SqlValue& point = found.rows[0][0];
  return Contradiction(absl::StrCat("point ", ToText(point)), "points", columns, "point = ?1",
                       found.rows[0]);
}

absl::Status MergeRows::CheckResults() const {
  const std::vector<std::string> columns = Determined();
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable found,
      out_->Query(absl::StrCat("SELECT hash, version FROM (SELECT DISTINCT ", Quoted(columns),
                               " FROM temp.all_results WHERE ", kDefinite,
                               ") GROUP BY hash, version HAVING COUNT(*) > 1 "
                               "ORDER BY hash, version LIMIT 1")));
  if (found.rows.empty()) return absl::OkStatus();
  const SqlValue& hash = found.rows[0][0];
  // Of one version only: values of versions may differ.
  return Contradiction(absl::StrCat("the simulation ", ToText(hash)), "results", columns,
                       absl::StrCat("hash = ?1 AND version IS ?2 AND ", kDefinite), found.rows[0]);
}

absl::Status MergeRows::CheckVersions() const {
  if (versions_.size() < 2) return absl::OkStatus();
  const Version& older = versions_.front();
  const Version& newer = versions_.back();
  return absl::InvalidArgumentError(absl::StrCat(
      newer.file, ": is of optimus ", newer.version, ", ", older.file, " of ", older.version,
      "; run one version everywhere, or keep the newer results with "
      "--allow-mixed-versions"));
}

absl::Status MergeRows::Check(bool allow_mixed_versions) const {
  OPTIMUS_RETURN_IF_ERROR(CheckPoints());
  if (!allow_mixed_versions) OPTIMUS_RETURN_IF_ERROR(CheckVersions());
  return CheckResults();
}

absl::Status MergeRows::Fill() const {
  const std::string points = Quoted(PointColumns());
  const std::string results = Quoted(ResultColumns());
  OPTIMUS_RETURN_IF_ERROR(out_->Execute("DELETE FROM temp.newness"));
  OPTIMUS_ASSIGN_OR_RETURN(Statement newness,
                           out_->Prepare("INSERT INTO temp.newness VALUES(?1, ?2)"));
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    OPTIMUS_RETURN_IF_ERROR(newness.Run({versions_[i].version, static_cast<std::int64_t>(i)}));
  }
  // Ordered by all that a row has, so that rows that tie are the same.
  return out_->Execute(
      absl::StrCat("DELETE FROM main.points; DELETE FROM main.results;"
                   "INSERT INTO main.points(",
                   points, ") SELECT DISTINCT ", points,
                   " FROM temp.all_points ORDER BY point;"
                   "INSERT INTO main.results(",
                   results, ") SELECT ", results,
                   " FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY hash ORDER BY NOT ", kDefinite,
                   ", place DESC, ", results,
                   ") AS choice FROM temp.all_results LEFT JOIN temp.newness USING(version)) "
                   "WHERE choice = 1 ORDER BY hash"));
}

std::vector<std::string> MergeRows::Versions() const {
  std::vector<std::string> names;
  names.reserve(versions_.size());
  for (const Version& version : versions_) names.push_back(version.version);
  return names;
}

absl::StatusOr<std::int64_t> MergeRows::OfSeveralVersions() const {
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable found,
      out_->Query("SELECT COUNT(*) FROM (SELECT hash FROM temp.all_results GROUP BY hash "
                  "HAVING COUNT(DISTINCT version) > 1)"));
  return std::get<std::int64_t>(found.rows[0][0]);
}

}  // namespace optimus::sweep
