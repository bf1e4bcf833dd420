#include "tools/sweep/show/summary.h"

#include <algorithm>
#include <cctype>
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

absl::Status CountStatuses(const Database& database, Summary& summary) {
  OPTIMUS_ASSIGN_OR_RETURN(
      const SqlTable table,
      database.Query("SELECT status, COUNT(*), SUM(fits = 0) FROM main.sweep WHERE status IS NOT "
                     "NULL GROUP BY status"));
  const std::map<std::string, std::int64_t*> counts = {{kStatusOk, &summary.ok},
                                                       {kStatusImpossible, &summary.impossible},
                                                       {kStatusFailed, &summary.failed},
                                                       {kStatusOutOfMemory, &summary.out_of_memory},
                                                       {kStatusTimeout, &summary.timeout}};
  for (const auto& row : table.rows) {
    summary.done += Integer(row[1]);
    const auto found = counts.find(ToText(row[0]));
    if (found != counts.end()) *found->second = Integer(row[1]);
    if (ToText(row[0]) == kStatusOk) summary.does_not_fit = Integer(row[2]);
  }
  return absl::OkStatus();
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

// "tp 16 of 12 heads" -> "tp # of # heads": what makes messages alike.
std::string WithoutNumbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) {
      out.push_back(c);
    } else if (out.empty() || out.back() != '#') {
      out.push_back('#');
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<Summary> Summarize(const Database& database, const About& about,
                                  const Filter& filter) {
  Summary summary;
  summary.points = about.points;
  summary.total_points = about.total_points;
  summary.excluded = about.excluded;
  OPTIMUS_RETURN_IF_ERROR(CountStatuses(database, summary));
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
