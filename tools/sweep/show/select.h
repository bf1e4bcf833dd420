#pragma once
// Which points and columns an answer is about: the flags' words made into SQL over the view
// `sweep`, with errors that name the flag and list the columns there are.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

// A column of the view `sweep`: one of about.columns, or point, status, error, hash.
// INVALID_ARGUMENT "FLAG: no column \"NAME\"; columns: ...".
absl::StatusOr<Column> FindColumn(const About& about, const std::string& flag,
                                  const std::string& name);
// The same, of numbers only.
absl::StatusOr<Column> FindNumber(const About& about, const std::string& flag,
                                  const std::string& name);
absl::StatusOr<std::vector<Column>> FindColumns(const About& about, const std::string& flag,
                                                const std::vector<std::string>& names);
std::vector<std::string> Names(const std::vector<Column>& columns);

// What counts as good. "NAME" goes by the column's `better`; "+NAME" wants it low, "-NAME" high.
struct Aim {
  Column column;
  bool high = false;  // the larger the better
};
// A column that is neither (better is empty) is best low where `strict` is false, and an
// INVALID_ARGUMENT that says how to ask where it is true.
absl::StatusOr<Aim> ParseAim(const About& about, const std::string& flag, const std::string& text,
                             bool strict);

// Rows of the view `sweep` that are means over the seeds of a sweep (seeds.h). Else they are single
// points.
struct SeedMeans {
  std::int64_t fewest = 0, most = 0;  // seeds of a row
  bool on() const { return most > 0; }
};
inline constexpr char kSeedsColumn[] = "seeds";
inline constexpr char kSeedsTitle[] = "seeds that ran";
// Columns of such rows that no axis can hide.
inline constexpr char kSeedsAsked[] = "seeds asked";
inline constexpr char kSeedsRan[] = "seeds ran";

// Points that answers are made of: those that ended well, as far as the flags allow.
struct Filter {
  std::string where;         // SQL over the columns of `sweep`; empty: all
  bool not_fitting = false;  // also plans that do not fit into a GPU's memory
  SeedMeans seeds = {};      // what rows are
};
// INVALID_ARGUMENT "--where: SQLITE'S MESSAGE; columns: ..." where it is no expression.
absl::Status CheckWhere(const Database& database, const About& about, const Filter& filter);
std::string Source(const Filter& filter);          // the view, of means or of single points
std::string OkCondition(const Filter& filter);     // SQL, never empty
std::string WhereCondition(const Filter& filter);  // of filter.where alone; "1" where it is empty

// "\"a\", \"b\""
std::string SqlNames(const std::vector<Column>& columns);
// "\"a\" DESC NULLS LAST, point": ties go to the lower number.
std::string SqlOrder(const Aim& aim);

// The best `top` rows (0: all), best first.
absl::StatusOr<SqlTable> BestRows(const Database& database, const std::vector<Column>& columns,
                                  const Filter& filter, const Aim& aim, int top);
// The best row of every combination of values of `by`, in their order: `by`, points (how many there
// are), then `columns`.
absl::StatusOr<SqlTable> BestOfGroups(const Database& database, const std::vector<Column>& by,
                                      const std::vector<Column>& columns, const Filter& filter,
                                      const Aim& aim);
// Every point, whatever became of it, by number.
absl::StatusOr<SqlTable> AllRows(const Database& database, const std::vector<Column>& columns,
                                 const Filter& filter);

// Values of `column` in the order of the points that have them first. NULL is left out.
absl::StatusOr<std::vector<SqlValue>> InOrderOfPoints(const Database& database,
                                                      const Column& column);

// 0 where it is none.
std::int64_t Integer(const SqlValue& value);
// Absent for NULL and text.
std::optional<double> ToNumber(const SqlValue& value);

}  // namespace optimus::sweep
