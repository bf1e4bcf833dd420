#include "tools/sweep/show/seeds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

std::string OfThoseThatRan(const std::string& function, const std::string& column) {
  return absl::StrCat(function, "(", column, ") FILTER (WHERE status = '", kStatusOk, "')");
}

// What is the same for all seeds stays as it is, to the last bit.
std::string MeanOf(const Column& column) {
  const std::string name = QuoteIdentifier(column.name);
  std::string least = OfThoseThatRan("MIN", name);
  const std::string most = OfThoseThatRan("MAX", name);
  if (column.name == "fits") return least;
  const std::string otherwise = column.type == "TEXT" ? "NULL" : OfThoseThatRan("AVG", name);
  return absl::StrCat("CASE WHEN ", least, " = ", most, " THEN ", least, " ELSE ", otherwise,
                      " END");
}

std::string WhereEqual(const std::string& column) {
  return absl::StrCat("CASE WHEN MIN(", column, ") = MAX(", column, ") THEN MIN(", column,
                      ") END AS ", column);
}

// The columns that points of a row agree in. NULL: all points are one row.
std::string GroupNames(const About& about) {
  const auto columns = ColumnsOfKind(about, {ColumnKind::kAxis, ColumnKind::kDerived});
  return columns.empty() ? "NULL" : SqlNames(columns);
}

// Metrics of numbers among `names`.
std::vector<Column> SpreadColumns(const About& about, const std::vector<std::string>& names) {
  std::vector<Column> columns;
  for (const std::string& name : names) {
    const Column* column = about.Find(name);
    if (column == nullptr || column->kind != ColumnKind::kMetric || column->type == "TEXT")
      continue;
    const bool known = std::any_of(columns.begin(), columns.end(),
                                   [&](const Column& other) { return other.name == name; });
    // Axes may have any name: theirs come first.
    const bool taken =
        about.Find(LeastName(name)) != nullptr || about.Find(MostName(name)) != nullptr;
    if (!known && !taken) columns.push_back(*column);
  }
  return columns;
}

// "expression AS name" of every column that `sweep` has, and of the new ones, which `about` gets.
std::string MeanColumns(const std::vector<Column>& spread, About& about) {
  std::string sql = "MIN(point) AS point";
  for (const Column& c : ColumnsOfKind(about, {ColumnKind::kAxis, ColumnKind::kDerived})) {
    absl::StrAppend(&sql, ", ", QuoteIdentifier(c.name));
  }
  for (const Column& c : ColumnsOfKind(about, {ColumnKind::kMetric, ColumnKind::kCondition})) {
    absl::StrAppend(&sql, ", ", MeanOf(c), " AS ", QuoteIdentifier(c.name));
  }
  absl::StrAppend(&sql, ", CASE WHEN SUM(status = '", kStatusOk, "') > 0 THEN '", kStatusOk,
                  "' ELSE MIN(status) END AS status, ", WhereEqual("error"), ", ",
                  WhereEqual("hash"), ", COUNT(*) AS ", QuoteIdentifier(kSeedsAsked), ", ",
                  OfThoseThatRan("COUNT", "point"), " AS ", QuoteIdentifier(kSeedsRan));
  for (const Column& c : spread) {
    for (const bool least : {true, false}) {
      const std::string name = least ? LeastName(c.name) : MostName(c.name);
      absl::StrAppend(&sql, ", ", OfThoseThatRan(least ? "MIN" : "MAX", QuoteIdentifier(c.name)),
                      " AS ", QuoteIdentifier(name));
      about.columns.push_back({name, ColumnKind::kMetric, c.type, c.unit,
                               absl::StrCat(c.title.empty() ? c.name : c.title,
                                            least ? ", least of the seeds" : ", most of the seeds"),
                               c.better, ""});
    }
  }
  if (about.Find(kSeedsColumn) == nullptr) {
    absl::StrAppend(&sql, ", ", OfThoseThatRan("COUNT", "point"), " AS ", kSeedsColumn);
    about.columns.push_back(
        {kSeedsColumn, ColumnKind::kCondition, "INTEGER", "", kSeedsTitle, "", ""});
  }
  return sql;
}

}  // namespace

std::string LeastName(const std::string& name) { return absl::StrCat(name, "_least"); }
std::string MostName(const std::string& name) { return absl::StrCat(name, "_most"); }

absl::StatusOr<SeedMeans> UseSeedMeans(const Database& database,
                                       const std::vector<std::string>& spread, About& about) {
  const Column* seed = about.Find(kSeedAxis);
  if (seed == nullptr || seed->kind != ColumnKind::kAxis) return SeedMeans{};
  About means = about;
  std::erase_if(means.columns, [](const Column& column) { return column.name == kSeedAxis; });
  const std::string group = GroupNames(means);
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable sizes,
      database.Query(absl::StrCat("SELECT MIN(n), MAX(n) FROM (SELECT COUNT(*) AS n FROM points "
                                  "GROUP BY ",
                                  group, ")")));
  const SeedMeans seeds{Integer(sizes.rows[0][0]), Integer(sizes.rows[0][1])};
  if (seeds.most < 2) return SeedMeans{};
  const std::string columns = MeanColumns(SpreadColumns(means, spread), means);
  OPTIMUS_RETURN_IF_ERROR(database.Execute(absl::StrCat(
      "CREATE TEMP VIEW sweep AS SELECT ", columns, " FROM main.sweep GROUP BY ", group)));
  about = std::move(means);
  return seeds;
}

}  // namespace optimus::sweep
