#include "executor/watch/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "executor/watch/processes.h"

namespace optimus::executor {
namespace {

std::string Name() { return absl::StrCat("optimus-board-test-", getpid()); }

std::string PathOf(const std::string& name) {
  for (const char* folder : {"/dev/shm/", "/tmp/"}) {
    if (std::filesystem::exists(folder + name)) return folder + name;
  }
  return "";
}

TEST(BoardTest, AnotherProcessReadsWhatOneWrote) {
  const std::string name = Name();
  const auto board = Board::Open(name, 2);
  ASSERT_TRUE(board.ok()) << board.status();
  const pid_t child = fork();
  if (child == 0) {
    const auto its = Board::Open(name, 2);
    if (!its.ok()) _exit(1);
    (*its)->Join(1, 17);
    (*its)->Write(1, "compute: a");
    (*its)->SetState(1, RankState::kHung);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  (*board)->Unlink();
  ASSERT_EQ(status, 0);
  const BoardEntry entry = (*board)->Read(1);
  EXPECT_EQ(entry.rank, 17);
  EXPECT_EQ(entry.pid, child);
  EXPECT_GT(entry.start_time, 0);
  EXPECT_EQ(entry.state, RankState::kHung);
  EXPECT_EQ(entry.text, "compute: a");
  EXPECT_EQ((*board)->state(0), RankState::kAbsent);
}

TEST(BoardTest, LeavesNoFileOnceItsNameIsTakenAway) {
  const auto board = Board::Open(Name(), 1);
  ASSERT_TRUE(board.ok()) << board.status();
  const std::string path = PathOf(Name());
  EXPECT_FALSE(path.empty());
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  (*board)->Unlink();
  (*board)->Unlink();  // by another rank of the node
  EXPECT_TRUE(PathOf(Name()).empty());
  (*board)->Join(0, 3);
  EXPECT_EQ((*board)->Read(0).rank, 3);
}

TEST(BoardTest, ALongTextIsCutWhereACharacterEnds) {
  const auto board = Board::Open(Name(), 1);
  ASSERT_TRUE(board.ok()) << board.status();
  (*board)->Unlink();
  const std::string just_fits(Board::kTextBytes, 'x');
  (*board)->Write(0, just_fits);
  EXPECT_EQ((*board)->Read(0).text, just_fits);
  std::string of_two_bytes = "x";
  while (of_two_bytes.size() < Board::kTextBytes) of_two_bytes += "\u00e9";
  (*board)->Write(0, of_two_bytes);
  const std::string text = (*board)->Read(0).text;
  EXPECT_LE(text.size(), Board::kTextBytes);
  EXPECT_TRUE(text.ends_with("\u00e9..."));
  (*board)->Write(0, "short\nlines");
  EXPECT_EQ((*board)->Read(0).text, "short lines");
}

// A writer that goes on for ever, and a reader that must never see a mixture of two texts.
TEST(BoardTest, TextsAreNeverMixed) {
  const auto board = Board::Open(Name(), 1);
  ASSERT_TRUE(board.ok()) << board.status();
  (*board)->Unlink();
  (*board)->Write(0, std::string(Board::kTextBytes, 'a'));
  const pid_t child = fork();
  if (child == 0) {
    for (char c = 'a';; c = static_cast<char>(c == 'z' ? 'a' : c + 1)) {
      (*board)->Write(0, std::string(Board::kTextBytes, c));
      if (c == 'm') usleep(1);
    }
  }
  std::set<char> seen;
  int mixed = 0;
  for (int i = 0; i < 2000 || (seen.size() < 2 && i < 100000); ++i) {
    const std::string text = (*board)->Read(0).text;
    seen.insert(text[0]);
    mixed += text == std::string(Board::kTextBytes, text[0]) ? 0 : 1;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(mixed, 0);
  EXPECT_GE(seen.size(), 2);
  EXPECT_EQ((*board)->Read(0).text.size(), Board::kTextBytes);  // also where it died writing
}

TEST(BoardTest, OneOfAllMaySpeak) {
  const auto board = Board::Open(Name(), 3);
  ASSERT_TRUE(board.ok());
  (*board)->Unlink();
  EXPECT_EQ((*board)->ClaimToSpeak(1), 1);
  EXPECT_EQ((*board)->ClaimToSpeak(0), 1);
  EXPECT_EQ((*board)->ClaimToSpeak(1), 1);
}

TEST(BoardTest, WhoHasJoinedStarts) {
  const auto board = Board::Open(Name(), 1);
  ASSERT_TRUE(board.ok());
  (*board)->Unlink();
  (*board)->Join(0, 0);
  EXPECT_EQ((*board)->Read(0).text, "starts");
}

}  // namespace
}  // namespace optimus::executor
