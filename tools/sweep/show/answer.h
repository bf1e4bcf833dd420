#pragma once
// What is asked of a sweep's database, and the answer that text, JSON and CSV are printed from.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/show/pareto.h"
#include "tools/sweep/show/select.h"
#include "tools/sweep/show/sensitivity.h"
#include "tools/sweep/show/summary.h"

namespace optimus::sweep {

inline constexpr int kTop = 10;

struct Question {
  Filter filter;
  std::optional<int> top;             // rows of the list of the best; 0: all
  std::string sort;                   // a column, with + or - as Aim; empty: the objective
  std::vector<std::string> columns;   // empty: axes, derived values and the main metrics
  std::vector<std::string> group_by;  // empty: not asked for
  std::vector<std::string> pareto;    // two or more measures; empty: not asked for
  bool sensitivity = false;
  bool errors = false;
  bool per_seed = false;  // single points, where a sweep has an axis "seed": not means over it
  bool plot = false;      // the caller draws the rows, too
};

struct BestList {
  std::vector<Column> columns;
  SqlTable table;
  std::int64_t of = 0;  // points it was chosen from
};

struct GroupList {
  std::vector<Column> by;
  std::vector<Column> columns;  // of the table: `by`, points, the rest
  SqlTable table;
};

struct ErrorList {
  std::vector<Column> axes;
  std::vector<ErrorGroup> groups;
};

// Parts that were not asked for are absent. The best are there where nothing else was asked for, or
// where `top` was.
struct Answer {
  About about;         // of the rows that answer: points, or means over seeds
  About points_about;  // of single points: the errors are of these
  Summary summary;
  Filter filter;  // and whether the rows are means
  Aim aim;
  std::optional<BestList> best;
  std::optional<GroupList> groups;
  std::vector<Column> front_columns;
  std::optional<Front> front;
  std::optional<Sensitivity> sensitivity;
  std::optional<ErrorList> errors;
};

// Where the answers are means, `database` shows them instead of its points from now on (seeds.h).
// Every error of a flag is an INVALID_ARGUMENT that names it.
absl::StatusOr<Answer> Ask(const Database& database, const Question& question);

// The one table of an answer, for CSV. INVALID_ARGUMENT where it has several.
absl::StatusOr<SqlTable> TableOf(const Answer& answer);

}  // namespace optimus::sweep
