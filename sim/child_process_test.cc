#include "sim/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <new>
#include <string>
#include <utility>

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

// Forks a process that runs a very long simulation, and returns its id and that of its child.
std::pair<pid_t, pid_t> StartLongRun() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const auto result = RunInChild([&]() -> absl::StatusOr<std::string> {
      const pid_t self = getpid();
      if (write(ends[1], &self, sizeof(self)) != sizeof(self)) _exit(1);
      sleep(60);
      return "";
    });
    _exit(0);
  }
  pid_t child = -1;
  EXPECT_EQ(read(ends[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  close(ends[0]);
  close(ends[1]);
  return {parent, child};
}

// Gone, or dead and not yet waited for by whoever inherited it.
bool IsGone(pid_t process) {
  if (kill(process, 0) != 0) return true;
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.compare(name_end, 3, ") Z") == 0;
}

TEST(ChildProcessTest, DoesNotOutliveItsParent) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const auto [parent, child] = StartLongRun();
    ASSERT_GT(child, 0);
    EXPECT_FALSE(IsGone(child));
    kill(parent, signal);
    waitpid(parent, nullptr, 0);
    for (int i = 0; i < 500 && !IsGone(child); ++i) usleep(10'000);
    EXPECT_TRUE(IsGone(child)) << "after signal " << signal;
    kill(child, SIGKILL);
  }
}

}  // namespace
}  // namespace optimus::sim
