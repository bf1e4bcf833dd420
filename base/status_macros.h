#pragma once
// Debian 12's Abseil (20220623) has no status_macros.

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// `lhs` may be a declaration, so it cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define OPTIMUS_RETURN_IF_ERROR(expr)                                                         \
  do {                                                                                        \
    if (absl::Status optimus_status_ = (expr); !optimus_status_.ok()) return optimus_status_; \
  } while (false)

#define OPTIMUS_CONCAT_INNER_(a, b) a##b
#define OPTIMUS_CONCAT_(a, b) OPTIMUS_CONCAT_INNER_(a, b)
#define OPTIMUS_ASSIGN_OR_RETURN(lhs, expr) \
  OPTIMUS_ASSIGN_OR_RETURN_(OPTIMUS_CONCAT_(optimus_statusor_, __LINE__), lhs, expr)
#define OPTIMUS_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return tmp.status();             \
  lhs = std::move(tmp).value()
// NOLINTEND(bugprone-macro-parentheses)
