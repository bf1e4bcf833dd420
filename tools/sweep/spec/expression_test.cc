#include "tools/sweep/spec/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

class ExpressionTest : public ::testing::Test {
 protected:
  absl::StatusOr<SqlValue> Value(const std::string& text) {
    absl::StatusOr<Expression> expression =
        Expression::Parse(database_, text, {"dp", "tp", "name"});
    if (!expression.ok()) return expression.status();
    return expression->Value({std::int64_t{6}, std::int64_t{4}, std::string("a")});
  }
  ExpressionTest() { database_.OnlyCompute(); }
  Database database_ = Database::InMemory().value();
};

TEST_F(ExpressionTest, Arithmetic) {
  EXPECT_EQ(Value("dp * tp").value(), SqlValue(std::int64_t{24}));
  EXPECT_EQ(Value("dp / tp").value(), SqlValue(std::int64_t{1}));
  EXPECT_EQ(Value("dp * 1.0 / tp").value(), SqlValue(1.5));
  EXPECT_EQ(Value("dp / 0").value(), SqlValue());
  EXPECT_EQ(Value("name || 'b'").value(), SqlValue(std::string("ab")));
  EXPECT_EQ(Value("dp -- six").value(), SqlValue(std::int64_t{6}));
}

TEST_F(ExpressionTest, Truth) {
  EXPECT_TRUE(IsTrue(Value("dp * tp == 24 AND name IN ('a', 'b')").value()).value());
  EXPECT_FALSE(IsTrue(Value("dp % tp == 0").value()).value());
  EXPECT_FALSE(IsTrue(Value("dp / 0 == 1").value()).value());
  EXPECT_TRUE(IsTrue(SqlValue(0.5)).value());
  EXPECT_FALSE(IsTrue(Value("name").value()).ok());
}

TEST_F(ExpressionTest, MistakesNameWhatThereIs) {
  const std::string message(Value("dpp * 2").status().message());
  EXPECT_THAT(message, HasSubstr("no such column: dpp"));
  EXPECT_THAT(message, HasSubstr("dp, tp, name"));
  EXPECT_THAT(std::string(Value("dp *").status().message()), HasSubstr("syntax error"));
  EXPECT_FALSE(Value("dp, tp").ok());
  EXPECT_FALSE(Value("dp) FROM (SELECT 1 AS dp); DROP TABLE x; --").ok());
  EXPECT_FALSE(Value("").ok());
  EXPECT_FALSE(Value("1) OR (1").ok());
  EXPECT_FALSE(Value("random()").ok());
  EXPECT_FALSE(Value("x'00'").ok());
  EXPECT_FALSE(Value("(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
                     "SELECT max(x) FROM c)")
                   .ok());
}

}  // namespace
}  // namespace optimus::sweep
