#include "executor/watch/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/watch/testing.h"

namespace optimus::executor {
namespace {

using testing::ForkedRanks;

pid_t ForkSleeper() {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  return child;
}

TEST(ProcessesTest, AKilledOneIsGoneBeforeItsParentAsksForIt) {
  const pid_t first = ForkSleeper();
  const pid_t second = ForkSleeper();
  Processes processes({{first, StartTimeOf(first).value_or(0)},
                       {second, StartTimeOf(second).value_or(0)},
                       {getpid(), StartTimeOf(getpid()).value_or(0)}});
  processes.Refresh();
  EXPECT_EQ(processes.gone(), std::vector<bool>({false, false, false}));
  kill(second, SIGKILL);
  EXPECT_TRUE(ForkedRanks::WaitFor([&] {
    processes.Refresh();
    return processes.gone()[1];
  }));
  EXPECT_EQ(processes.gone(), std::vector<bool>({false, true, false}));
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
  waitpid(second, nullptr, 0);
  processes.Refresh();
  EXPECT_EQ(processes.gone(), std::vector<bool>({true, true, false}));
}

TEST(ProcessesTest, AnotherProcessWithTheSamePidIsNotTheOne) {
  const std::int64_t start = StartTimeOf(getpid()).value_or(0);
  EXPECT_GT(start, 0);
  const Processes processes({{getpid(), start + 1}});
  EXPECT_TRUE(processes.gone()[0]);
}

TEST(ProcessesTest, SeesWhoIsStopped) {
  const pid_t child = ForkSleeper();
  EXPECT_FALSE(IsStopped(child));
  kill(child, SIGSTOP);
  EXPECT_TRUE(ForkedRanks::WaitFor([&] { return IsStopped(child); }));
  kill(child, SIGCONT);
  EXPECT_TRUE(ForkedRanks::WaitFor([&] { return !IsStopped(child); }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(IsStopped(child));
  EXPECT_FALSE(StartTimeOf(child).has_value());
}

}  // namespace
}  // namespace optimus::executor
