#include "base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace optimus {
namespace {

absl::Status FirstOf(const absl::Status& first, int& evaluations) {
  OPTIMUS_RETURN_IF_ERROR((++evaluations, first));
  return absl::InternalError("reached the end");
}

TEST(ReturnIfError, ReturnsTheErrorAndEvaluatesOnce) {
  int evaluations = 0;
  EXPECT_EQ(FirstOf(absl::NotFoundError("gone"), evaluations), absl::NotFoundError("gone"));
  EXPECT_EQ(evaluations, 1);
}

TEST(ReturnIfError, GoesOnWhenOk) {
  int evaluations = 0;
  EXPECT_EQ(FirstOf(absl::OkStatus(), evaluations), absl::InternalError("reached the end"));
}

// Without braces on purpose: the macro must not swallow the else.
// NOLINTBEGIN(readability-braces-around-statements)
TEST(ReturnIfError, IsOneStatementAfterIf) {
  const auto f = [](bool fails) -> absl::Status {
    if (fails)
      OPTIMUS_RETURN_IF_ERROR(absl::AbortedError("yes"));
    else
      return absl::OkStatus();
    return absl::InternalError("not returned");
  };
  EXPECT_EQ(f(true), absl::AbortedError("yes"));
  EXPECT_TRUE(f(false).ok());
}
// NOLINTEND(readability-braces-around-statements)

absl::StatusOr<int> SumOf(const absl::StatusOr<int>& a, const absl::StatusOr<int>& b) {
  OPTIMUS_ASSIGN_OR_RETURN(const int x, a);
  int y = 0;
  OPTIMUS_ASSIGN_OR_RETURN(y, b);
  return x + y;
}

TEST(AssignOrReturn, DeclaresAndAssigns) {
  EXPECT_EQ(SumOf(2, 3).value(), 5);
  EXPECT_EQ(SumOf(absl::NotFoundError("a"), 3).status(), absl::NotFoundError("a"));
  EXPECT_EQ(SumOf(2, absl::NotFoundError("b")).status(), absl::NotFoundError("b"));
}

absl::StatusOr<std::string> TextOf(absl::StatusOr<std::unique_ptr<std::string>> text) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<std::string> owned, std::move(text));
  return *owned;
}

TEST(AssignOrReturn, MovesOut) {
  EXPECT_EQ(TextOf(std::make_unique<std::string>("moved")).value(), "moved");
}

}  // namespace
}  // namespace optimus
