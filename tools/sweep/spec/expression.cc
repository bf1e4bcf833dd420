#include "tools/sweep/spec/expression.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

absl::StatusOr<Expression> Expression::Parse(const Database& database, const std::string& text,
                                             const std::vector<std::string>& names) {
  std::vector<std::string> columns;
  columns.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    columns.push_back(absl::StrCat("?", i + 1, " AS ", QuoteIdentifier(names[i])));
  }
  const std::string from = absl::StrCat(" FROM (SELECT ", absl::StrJoin(columns, ", "), ")");
  database.ForgetSteps();
  // A line of its own: a comment at its end must not swallow what follows. First without brackets:
  // "1) OR (1" is an expression only inside of them.
  absl::StatusOr<Statement> statement = database.Prepare(absl::StrCat("SELECT ", text, "\n", from));
  if (statement.ok() && statement->columns() == 1) {
    statement = database.Prepare(absl::StrCat("SELECT (", text, "\n)", from));
  }
  if (statement.ok() && statement->columns() == 1) {
    return Expression(database, text, *std::move(statement));
  }
  std::string hint;
  for (const Column& metric : MetricColumns()) {
    if (absl::StrContains(text, metric.name)) {
      hint = absl::StrCat("; ", metric.name,
                          " is known after the simulation: choose by it with sweep show --where");
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is no expression: ",
      statement.ok() ? "it has several values" : std::string(statement.status().message()),
      "; names: ", absl::StrJoin(names, ", "), hint));
}

absl::StatusOr<SqlValue> Expression::Value(absl::Span<const SqlValue> values) {
  database_->ForgetSteps();
  OPTIMUS_RETURN_IF_ERROR(statement_.Bind(values));
  OPTIMUS_ASSIGN_OR_RETURN(const bool row, statement_.Step());
  if (!row) return SqlValue();
  if (statement_.IsBlob(0)) {
    return absl::InvalidArgumentError("gives a BLOB, not a number or a text");
  }
  return statement_.Value(0);
}

absl::StatusOr<bool> IsTrue(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer != 0;
  if (const auto* real = std::get_if<double>(&value)) return *real != 0;
  if (std::holds_alternative<std::monostate>(value)) return false;
  return absl::InvalidArgumentError(
      absl::StrCat("gives the text \"", ToText(value), "\", not true or false"));
}

}  // namespace optimus::sweep
