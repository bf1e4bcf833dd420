#include "sim/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <new>

namespace optimus::sim {
namespace {

using ::testing::HasSubstr;

TEST(ChildProcessTest, BringsBackBytesOfAnySizeAndContent) {
  for (const std::size_t size : {0U, 1U, 70000U, 5000000U}) {
    std::string expected(size, '\0');
    for (std::size_t i = 0; i < size; ++i) expected[i] = static_cast<char>(i * 31);
    const auto result = RunInChild([&] { return expected; });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->bytes, expected);
    EXPECT_GT(result->peak_rss_bytes, 0);
  }
}

TEST(ChildProcessTest, RunsInAnotherProcess) {
  int touched = 0;
  const auto result = RunInChild([&]() -> absl::StatusOr<std::string> {
    touched = 1;
    return std::to_string(getpid());
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(touched, 0);
  EXPECT_NE(result->bytes, std::to_string(getpid()));
}

TEST(ChildProcessTest, PassesAStatusOn) {
  const auto result = RunInChild(
      []() -> absl::StatusOr<std::string> { return absl::FailedPreconditionError("not now"); });
  EXPECT_EQ(result.status(), absl::FailedPreconditionError("not now"));
}

TEST(ChildProcessTest, ReportsASignalWithAHint) {
  const auto killed = RunInChild([]() -> absl::StatusOr<std::string> {
    raise(SIGKILL);
    return "";
  });
  EXPECT_EQ(killed.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(killed.status().message()), HasSubstr("signal 9 (Killed); hint:"));
}

TEST(ChildProcessTest, ReportsAnExitWithoutResult) {
  const auto result = RunInChild([]() -> absl::StatusOr<std::string> { _exit(7); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("ended with code 7"));
}

TEST(ChildProcessTest, ExceptionsBecomeStatuses) {
  const auto memory = RunInChild([]() -> absl::StatusOr<std::string> { throw std::bad_alloc(); });
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  const auto other =
      RunInChild([]() -> absl::StatusOr<std::string> { throw std::runtime_error("boom"); });
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("boom"));
}

}  // namespace
}  // namespace optimus::sim
