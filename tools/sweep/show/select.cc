#include "tools/sweep/show/select.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optimus::sweep {
namespace {

// A column that means over seeds have no longer is not just misspelt.
std::string SeedHint(const About& about, absl::string_view what) {
  const Column* seeds = about.Find(kSeedsColumn);
  const bool means = seeds != nullptr && seeds->title == kSeedsTitle;
  return means && what == "seed" ? "answers are means over the seeds (--per-seed: each one); " : "";
}

// "columns: tp, pp, iteration_time_s, ..., point, status, error, hash"
std::string KnownColumns(const About& about) {
  std::vector<std::string> names = Names(about.columns);
  for (const Column& column : PlainColumns()) names.push_back(column.name);
  return absl::StrCat("columns: ", absl::StrJoin(names, ", "));
}

absl::Status NamedWhere(const About& about, const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  const absl::string_view message = status.message();
  const bool seed = absl::EndsWithIgnoreCase(message, "no such column: seed");
  return absl::InvalidArgumentError(absl::StrCat(
      "--where: ", message, "; ", SeedHint(about, seed ? "seed" : ""), KnownColumns(about)));
}

}  // namespace

absl::StatusOr<Column> FindColumn(const About& about, const std::string& flag,
                                  const std::string& name) {
  if (const Column* column = about.Find(name); column != nullptr) return *column;
  for (const Column& column : PlainColumns()) {
    if (column.name == name) return column;
  }
  return absl::InvalidArgumentError(absl::StrCat(flag, ": no column \"", name, "\"; ",
                                                 SeedHint(about, name), KnownColumns(about)));
}

absl::StatusOr<Column> FindNumber(const About& about, const std::string& flag,
                                  const std::string& name) {
  OPTIMUS_ASSIGN_OR_RETURN(Column column, FindColumn(about, flag, name));
  if (column.type == "TEXT") {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": column \"", name, "\" is text; it takes a column of numbers"));
  }
  return column;
}

absl::StatusOr<std::vector<Column>> FindColumns(const About& about, const std::string& flag,
                                                const std::vector<std::string>& names) {
  std::vector<Column> columns;
  columns.reserve(names.size());
  for (const std::string& name : names) {
    OPTIMUS_ASSIGN_OR_RETURN(Column column, FindColumn(about, flag, name));
    columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<std::string> Names(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

absl::StatusOr<Aim> ParseAim(const About& about, const std::string& flag, const std::string& text,
                             bool strict) {
  const bool sign = !text.empty() && (text.front() == '-' || text.front() == '+');
  OPTIMUS_ASSIGN_OR_RETURN(Column column, FindColumn(about, flag, sign ? text.substr(1) : text));
  if (strict) OPTIMUS_RETURN_IF_ERROR(FindNumber(about, flag, column.name).status());
  if (strict && !sign && column.better.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": column \"", column.name, "\" is neither better high nor low; write -",
                     column.name, " where high is better, +", column.name, " where low is"));
  }
  const bool high = sign ? text.front() == '-' : column.better == "high";
  return Aim{std::move(column), high};
}

// A line of its own ends what could be a comment.
std::string WhereCondition(const Filter& filter) {
  return filter.where.empty() ? "1" : absl::StrCat("(", filter.where, "\n)");
}

// A temporary view hides that of the file; other tables are found there as well.
std::string Source(const Filter& filter) { return filter.seeds.on() ? "sweep" : "main.sweep"; }

std::string OkCondition(const Filter& filter) {
  return absl::StrCat("status = '", kStatusOk, "'",
                      filter.not_fitting ? "" : " AND (fits IS NULL OR fits <> 0)", " AND ",
                      WhereCondition(filter));
}

absl::Status CheckWhere(const Database& database, const About& about, const Filter& filter) {
  // The expression must stand in one pair of parentheses, in two places.
  const std::string condition = WhereCondition(filter);
  absl::Status status = database
                            .Prepare(absl::StrCat("SELECT ", condition, " FROM ", Source(filter),
                                                  " WHERE ", condition))
                            .status();
  // And without them: "1) OR (1" is an expression only inside of them.
  if (status.ok() && !filter.where.empty()) {
    status =
        database.Prepare(absl::StrCat("SELECT 1 FROM ", Source(filter), " WHERE ", filter.where))
            .status();
  }
  // Some errors are found by the values only.
  if (status.ok()) {
    status =
        database.Query(absl::StrCat("SELECT COUNT(*) FROM ", Source(filter), " WHERE ", condition))
            .status();
  }
  return NamedWhere(about, status);
}

std::string SqlNames(const std::vector<Column>& columns) {
  return absl::StrJoin(columns, ", ", [](std::string* out, const Column& column) {
    absl::StrAppend(out, QuoteIdentifier(column.name));
  });
}

std::string SqlOrder(const Aim& aim) {
  return absl::StrCat(QuoteIdentifier(aim.column.name), aim.high ? " DESC" : "",
                      " NULLS LAST, point");
}

absl::StatusOr<SqlTable> BestRows(const Database& database, const std::vector<Column>& columns,
                                  const Filter& filter, const Aim& aim, int top) {
  return database.Query(absl::StrCat("SELECT ", SqlNames(columns), " FROM ", Source(filter),
                                     " WHERE ", OkCondition(filter), " ORDER BY ", SqlOrder(aim),
                                     top > 0 ? absl::StrCat(" LIMIT ", top) : ""));
}

absl::StatusOr<SqlTable> BestOfGroups(const Database& database, const std::vector<Column>& by,
                                      const std::vector<Column>& columns, const Filter& filter,
                                      const Aim& aim) {
  const std::string group = SqlNames(by);
  std::vector<Column> others;  // what the group says need not be said again
  std::copy_if(columns.begin(), columns.end(), std::back_inserter(others), [&](const Column& c) {
    return std::none_of(by.begin(), by.end(), [&](const Column& b) { return b.name == c.name; });
  });
  const std::string inner =
      absl::StrCat("SELECT *, COUNT(*) OVER (PARTITION BY ", group, ") AS \"points of group\", ",
                   "ROW_NUMBER() OVER (PARTITION BY ", group, " ORDER BY ", SqlOrder(aim),
                   ") AS \"place in group\" FROM ", Source(filter), " WHERE ", OkCondition(filter));
  return database.Query(absl::StrCat("SELECT ", group, ", \"points of group\" AS points",
                                     others.empty() ? "" : ", ", SqlNames(others), " FROM (", inner,
                                     ") WHERE \"place in group\" = 1 ORDER BY ", group));
}

absl::StatusOr<SqlTable> AllRows(const Database& database, const std::vector<Column>& columns,
                                 const Filter& filter) {
  return database.Query(absl::StrCat("SELECT ", SqlNames(columns), " FROM ", Source(filter),
                                     " WHERE ", WhereCondition(filter), " ORDER BY point"));
}

absl::StatusOr<std::vector<SqlValue>> InOrderOfPoints(const Database& database,
                                                      const Column& column) {
  const std::string name = QuoteIdentifier(column.name);
  OPTIMUS_ASSIGN_OR_RETURN(
      SqlTable table,
      database.Query(absl::StrCat("SELECT ", name, " FROM sweep WHERE ", name,
                                  " IS NOT NULL GROUP BY ", name, " ORDER BY MIN(point)")));
  std::vector<SqlValue> values;
  values.reserve(table.rows.size());
  for (std::vector<SqlValue>& row : table.rows) values.push_back(std::move(row[0]));
  return values;
}

std::int64_t Integer(const SqlValue& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer == nullptr ? 0 : *integer;
}

std::optional<double> ToNumber(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

}  // namespace optimus::sweep
