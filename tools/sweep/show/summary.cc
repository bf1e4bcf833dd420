#include "tools/sweep/show/summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

absl::StatusOr<std::vector<std::string>> Distinct(const Database& database,
                                                  const std::string& column) {
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable table,
      database.Query(absl::StrCat("SELECT DISTINCT ", column, " FROM results WHERE ", column,
                                  " <> '' ORDER BY 1")));
  std::vector<std::string> values;
  values.reserve(table.rows.size());
  for (const auto& row : table.rows) values.push_back(ToText(row[0]));
  return values;
}

// Points that means had to do without.
absl::Status CountMissing(const Database& database, const Filter& filter, Summary& summary) {
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable table,
      database.Query(absl::StrCat("SELECT SUM(", QuoteIdentifier(kSeedsAsked), "), SUM(",
                                  QuoteIdentifier(kSeedsRan), ") FROM ", Source(filter), " WHERE ",
                                  OkCondition(filter))));
  summary.seeds_asked = Integer(table.rows[0][0]);
  summary.seeds_missing = summary.seeds_asked - Integer(table.rows[0][1]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Summary> Summarize(const Database& database, const About& about,
                                  const Filter& filter) {
  Summary summary;
  summary.points = about.points;
  summary.total_points = about.total_points;
  summary.excluded = about.excluded;
  OPTIMUS_ASSIGN_OR_RETURN(summary.counts, CountPoints(database));
  OPTIMUS_ASSIGN_OR_RETURN(summary.versions, Distinct(database, "version"));
  OPTIMUS_ASSIGN_OR_RETURN(summary.profile_hashes, Distinct(database, "profile_hash"));
  const Filter everything{filter.where, true, filter.seeds};
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable counted,
      database.Query(absl::StrCat("SELECT COUNT(*), SUM(fits = 0) FROM ", Source(filter), " WHERE ",
                                  OkCondition(everything))));
  summary.selected = Integer(counted.rows[0][0]);
  summary.left_out = filter.not_fitting ? 0 : Integer(counted.rows[0][1]);
  if (filter.seeds.on()) OPTIMUS_RETURN_IF_ERROR(CountMissing(database, filter, summary));
  return summary;
}

absl::StatusOr<std::vector<ErrorGroup>> GroupErrors(const Database& database, const About& about,
                                                    const Filter& filter) {
  const auto axes = ColumnsOfKind(about, {ColumnKind::kAxis, ColumnKind::kDerived});
  OPTIMUS_ASSIGN_OR_RETURN(
      SqlTable table,
      database.Query(absl::StrCat("SELECT point, status, error", axes.empty() ? "" : ", ",
                                  SqlNames(axes), " FROM ", Source(filter), " WHERE status <> '",
                                  kStatusOk, "' AND ", WhereCondition(filter), " ORDER BY point")));
  std::vector<ErrorGroup> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::vector<SqlValue>& row : table.rows) {
    const std::string status = ToText(row[1]), error = ToText(row[2]);
    const auto [at, added] = known.try_emplace({status, WithoutNumbers(error)}, groups.size());
    if (added) {
      groups.push_back({status, error, 0, Integer(row[0]), {row.begin() + 3, row.end()}});
    }
    ++groups[at->second].points;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const ErrorGroup& a, const ErrorGroup& b) { return a.points > b.points; });
  return groups;
}

}  // namespace optimus::sweep
