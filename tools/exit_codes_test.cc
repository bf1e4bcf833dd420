#include "tools/exit_codes.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/out_of_memory.h"

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

TEST(ExitCodesTest, OwnErrorsAreMarkedAndElseTheSame) {
  const absl::Status common = absl::NotFoundError("x");
  const absl::Status own = OwnError(common);
  EXPECT_FALSE(IsOwnError(common));
  EXPECT_TRUE(IsOwnError(own));
  EXPECT_EQ(ExitCode(own), ExitCode(common));
  EXPECT_EQ(ErrorLine(own), ErrorLine(common));
}

TEST(ExitCodesTest, AnErrorIsOneLine) {
  EXPECT_EQ(ErrorLine(absl::InternalError("bad name a\nb\x1b[0m\n")),
            "optimus: error: bad name a\\x0ab\\x1b[0m\n");
  EXPECT_EQ(ErrorLine(absl::NotFoundError("x: none")), "optimus: error: x: none\n");
}

TEST(ExitCodesTest, ALongErrorKeepsItsEnds) {
  const std::string line =
      ErrorLine(absl::NotFoundError("file: " + std::string(5000, 'x') + "; hint"));
  EXPECT_LT(line.size(), 1100U);
  EXPECT_EQ(line.substr(0, 24), "optimus: error: file: xx");
  EXPECT_EQ(line.substr(line.size() - 9), "xx; hint\n");
  EXPECT_NE(line.find("x...x"), std::string::npos);
}

absl::Status Work(int outcome) {
  if (outcome == 1) throw std::bad_alloc();
  if (outcome == 2) throw std::length_error("vector");
  return absl::OkStatus();
}

TEST(ExitCodesTest, OutOfMemoryNamesTheFileAndIsThree) {
  for (const int outcome : {1, 2}) {
    const absl::Status status =
        CatchOutOfMemory("e.textproto", "building", [&] { return Work(outcome); });
    EXPECT_EQ(ExitCode(status), 3);
    EXPECT_EQ(std::string(status.message()).find("e.textproto: out of memory while building"), 0U);
  }
  EXPECT_TRUE(CatchOutOfMemory("e", "building", [] { return Work(0); }).ok());
}

}  // namespace
}  // namespace optimus::tools
