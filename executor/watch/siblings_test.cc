#include "executor/watch/siblings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "executor/watch/processes.h"

namespace optimus::executor {
namespace {

constexpr char kVariable[] = "OPTIMUS_TEST_RANK";

// Started by the tests below as one of the ranks: says whom it sees.
TEST(SiblingTest, DISABLED_SaysWhomItSees) {
  const auto siblings = FindSiblings(kVariable);
  if (!siblings.has_value()) {
    std::puts("seen: nobody known");
    return;
  }
  for (const Sibling& sibling : *siblings) {
    std::printf("seen: rank %d: %s%s%s %s\n", sibling.rank, sibling.program.c_str(),
                sibling.same_program ? " same" : "", sibling.stopped ? " stopped" : "",
                absl::StrJoin(sibling.arguments, ",").c_str());
  }
  const auto speaker = WhoSpeaksInstead(*siblings);
  std::printf("seen: speaks: %d\n", speaker.has_value() ? speaker->rank : -1);
}

pid_t Start(const std::vector<std::string>& command, int rank, int output) {
  const pid_t process = fork();
  if (process != 0) return process;
  if (output >= 0) dup2(output, STDOUT_FILENO);
  std::vector<std::string> words = command;
  std::string variable = absl::StrCat(kVariable, "=", rank);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<char*, 2> environment = {variable.data(), nullptr};
  execve(arguments[0], arguments.data(), environment.data());
  _exit(127);
}

class SiblingsTest : public ::testing::Test {
 protected:
  ~SiblingsTest() override {
    for (const pid_t process : processes_) kill(process, SIGKILL);
    for (const pid_t process : processes_) waitpid(process, nullptr, 0);
  }
  pid_t Sleeper(int rank) {
    const pid_t process = Start({"/bin/sleep", "1000"}, rank, -1);
    processes_.push_back(process);
    // Before that it is still this program, and no rank.
    const std::string program = absl::StrCat("/proc/", process, "/comm");
    std::string name;
    while (name != "sleep") std::getline(std::ifstream(program), name);
    return process;
  }
  // What a rank that runs this program sees.
  static std::string SeenByRank(int rank, const std::vector<std::string>& before = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    std::vector<std::string> command = before;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    command.insert(command.end(), {self, "--gtest_also_run_disabled_tests",
                                   "--gtest_filter=SiblingTest.DISABLED_SaysWhomItSees"});
    const pid_t process = Start(command, rank, ends[1]);
    close(ends[1]);
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t n = 0; (n = read(ends[0], piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), static_cast<std::size_t>(n));
    }
    close(ends[0]);
    waitpid(process, nullptr, 0);
    return text;
  }
  std::vector<pid_t> processes_;
};

TEST_F(SiblingsTest, AreTheOtherRanksOfTheLauncher) {
  const pid_t stopped = Sleeper(3);
  Sleeper(0);
  kill(stopped, SIGSTOP);
  while (!IsStopped(stopped)) absl::SleepFor(absl::Milliseconds(5));
  const std::string seen = SeenByRank(1);
  EXPECT_THAT(seen, ::testing::HasSubstr("seen: rank 0: sleep 1000\nseen: rank 1: "));
  EXPECT_THAT(seen, ::testing::HasSubstr("_test same --gtest_also_run_disabled_tests,"));
  EXPECT_THAT(seen, ::testing::HasSubstr("seen: rank 3: sleep stopped 1000\n"));
  EXPECT_THAT(seen, ::testing::HasSubstr("seen: speaks: -1\n"));
}

TEST_F(SiblingsTest, OneThatHasEndedIsNotThere) {
  const pid_t ended = Sleeper(0);
  kill(ended, SIGKILL);  // and nobody asks for its exit status
  while (ParentOf(ended) != 0) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_THAT(SeenByRank(1), ::testing::Not(::testing::HasSubstr("rank 0")));
}

// The launcher's child is a shell, which has the rank too.
TEST_F(SiblingsTest, AreNotKnownWhereAScriptStartsTheRank) {
  EXPECT_THAT(SeenByRank(1, {"/bin/sh", "-c", "\"$@\"; true", "sh"}),
              ::testing::HasSubstr("seen: nobody known\n"));
}

TEST(SpeakerTest, IsTheLowestThatCan) {
  std::vector<Sibling> siblings(3);
  for (int i = 0; i < 3; ++i) {
    Sibling& sibling = siblings.at(static_cast<std::size_t>(i));
    sibling.pid = i == 2 ? getpid() : 1;
    sibling.rank = i;
    sibling.same_program = true;
  }
  EXPECT_EQ(WhoSpeaksInstead(siblings)->rank, 0);
  siblings[0].stopped = true;
  EXPECT_EQ(WhoSpeaksInstead(siblings)->rank, 1);
  siblings[1].same_program = false;
  EXPECT_FALSE(WhoSpeaksInstead(siblings).has_value());
}

}  // namespace
}  // namespace optimus::executor
