#include "tools/run_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/exit_codes.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;

// In place of mpirun: a shell.
absl::StatusOr<int> RunShell(const std::string& script) {
  return RunLauncher({"/bin/sh", "-c", script});
}

TEST(RunLauncherTest, TheExitCodeOfARunThatCameToItsEnd) {
  EXPECT_EQ(*RunShell("exit 0"), kExitSuccess);
  EXPECT_EQ(*RunShell("exit 2"), kExitCheckFailed);
}

TEST(RunLauncherTest, StandardErrorIsPassedOn) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(*RunShell("echo one >&2; sleep 0.1; echo two >&2"), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "one\ntwo\n");
}

TEST(RunLauncherTest, WhereARankHasSaidWhyItEndedThatIsAll) {
  EXPECT_EQ(*RunShell("echo 'optimus: error: no such file' >&2; exit 1"), kExitBadInput);
  EXPECT_EQ(*RunShell("printf 'optimus: er' >&2; sleep 0.1; echo 'ror: x' >&2; exit 137"),
            kExitInternal);
}

TEST(RunLauncherTest, WhereNoRankHasSaidWhyItEndedThatIsSaid) {
  const absl::Status error = RunShell("echo 'Primary job terminated' >&2; exit 5").status();
  EXPECT_TRUE(absl::IsInternal(error));
  EXPECT_THAT(std::string(error.message()), HasSubstr("exit code 5"));
  const absl::Status killed = RunShell("exit 137").status();
  EXPECT_THAT(std::string(killed.message()), HasSubstr("a rank was killed or crashed (SIGKILL)"));
  EXPECT_THAT(std::string(RunShell("kill -SEGV $$").status().message()),
              HasSubstr("mpirun was killed or crashed (SIGSEGV)"));
}

TEST(RunLauncherTest, AProgramThatCannotBeStarted) {
  const absl::Status error = RunLauncher({"/no/such/program"}).status();
  EXPECT_TRUE(absl::IsNotFound(error));
  EXPECT_THAT(std::string(error.message()), HasSubstr("/no/such/program cannot be started"));
}

TEST(RunLauncherTest, ASignalEndsTheLauncher) {
  for (const auto& [signal, name] : {std::pair(SIGTERM, "SIGTERM"), std::pair(SIGINT, "SIGINT")}) {
    const std::string started =
        absl::StrCat(::testing::TempDir(), "/run_launcher_test.", getpid(), ".", signal);
    // Held back in every thread before it is sent: it is for the one that runs the launcher.
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, nullptr);
    std::thread user([&started, signal = signal] {
      while (!std::ifstream(started).good()) absl::SleepFor(absl::Milliseconds(5));
      kill(getpid(), signal);
    });
    const absl::Status error =
        RunShell(absl::StrCat("trap 'exit 1' TERM; : >", started, "; while :; do sleep 0.1; done"))
            .status();
    user.join();
    std::remove(started.c_str());
    EXPECT_TRUE(absl::IsCancelled(error)) << error;
    EXPECT_THAT(std::string(error.message()),
                HasSubstr(absl::StrCat("asked to stop (", name, ")")));
  }
}

}  // namespace
}  // namespace optimus::tools
