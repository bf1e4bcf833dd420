#include "tools/exit_codes.h"

#include <gtest/gtest.h>

namespace optimus::tools {
namespace {

TEST(ExitCodesTest, BadInputIsOneAndOurOwnFaultIsThree) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCode(absl::NotFoundError("")), 1);
  EXPECT_EQ(ExitCode(absl::FailedPreconditionError("")), 1);
  EXPECT_EQ(ExitCode(absl::UnimplementedError("")), 1);
  EXPECT_EQ(ExitCode(absl::UnavailableError("")), 1);
  EXPECT_EQ(ExitCode(absl::InternalError("")), 3);
  EXPECT_EQ(ExitCode(absl::UnknownError("")), 3);
}

TEST(ExitCodesTest, AnErrorIsOneLine) {
  EXPECT_EQ(ErrorLine(absl::InternalError("blocked:\n  rank 0\r\n\n  rank 1\n")),
            "optimus: error: blocked:; rank 0; rank 1\n");
  EXPECT_EQ(ErrorLine(absl::NotFoundError("x: none")), "optimus: error: x: none\n");
}

}  // namespace
}  // namespace optimus::tools
