#pragma once
// Arithmetic between the values of a point, computed by SQLite.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/sweep/store/sqlite.h"

namespace optimus::sweep {

class Expression {
 public:
  // `database` has to be told OnlyCompute, and must outlive it. INVALID_ARGUMENT with SQLite's
  // message and the names there are.
  static absl::StatusOr<Expression> Parse(const Database& database, const std::string& text,
                                          const std::vector<std::string>& names);
  // `values`: of the names, in their order.
  absl::StatusOr<SqlValue> Value(absl::Span<const SqlValue> values);
  const std::string& text() const { return text_; }

 private:
  Expression(const Database& database, std::string text, Statement statement)
      : database_(&database), text_(std::move(text)), statement_(std::move(statement)) {}
  const Database* database_;
  std::string text_;
  Statement statement_;
};

// Not NULL, not 0, not empty text. Other text than a number is an error.
absl::StatusOr<bool> IsTrue(const SqlValue& value);

}  // namespace optimus::sweep
