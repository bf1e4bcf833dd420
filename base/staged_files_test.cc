#include "base/staged_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/files.h"

namespace optimus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class StagedFilesTest : public ::testing::Test {
 protected:
  StagedFilesTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(::testing::TempDir()) /
           ("staged_files_test_" + std::to_string(getpid()) + "_" + test->name());
    fs::create_directories(dir_);
  }
  ~StagedFilesTest() override { fs::remove_all(dir_); }
  std::string Path(const std::string& name) const { return (dir_ / name).string(); }
  std::vector<std::string> Listing() const {
    std::vector<std::string> names;
    for (const auto& e : fs::recursive_directory_iterator(dir_)) {
      names.push_back(fs::relative(e.path(), dir_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  fs::path dir_;
};

TEST_F(StagedFilesTest, NothingIsThereBeforeCommitAndAllAfterIt) {
  StagedFiles files;
  ASSERT_TRUE(files.CreateFolders(Path("deep/out/")).ok());
  ASSERT_TRUE(files.Add(Path("deep/out/a"), "1").ok());
  ASSERT_TRUE(files.Add(Path("b"), "2").ok());
  EXPECT_FALSE(fs::exists(Path("deep/out/a")));
  EXPECT_FALSE(fs::exists(Path("b")));
  ASSERT_TRUE(files.Commit().ok());
  EXPECT_THAT(Listing(), ElementsAre("b", "deep", "deep/out", "deep/out/a"));
  EXPECT_EQ(*ReadFile(Path("deep/out/a")), "1");
}

TEST_F(StagedFilesTest, WithoutCommitNothingStays) {
  std::ofstream(Path("b")) << "old";
  {
    StagedFiles files;
    ASSERT_TRUE(files.CreateFolders(Path("deep/out")).ok());
    ASSERT_TRUE(files.Add(Path("deep/out/a"), "1").ok());
    ASSERT_TRUE(files.Add(Path("b"), "2").ok());
    // A folder is in the way of the last one.
    const absl::Status status = files.Add(Path("deep"), "3");
    EXPECT_THAT(std::string(status.message()), HasSubstr("deep: cannot write: is a folder"));
  }
  EXPECT_THAT(Listing(), ElementsAre("b"));
  EXPECT_EQ(*ReadFile(Path("b")), "old");
}

TEST_F(StagedFilesTest, AFailedRenameTakesTheOthersBack) {
  std::ofstream(Path("a")) << "old";
  {
    StagedFiles files;
    for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(files.Add(Path(name), "new").ok());
    fs::create_directory(Path("c"));  // only now in the way
    EXPECT_THAT(std::string(files.Commit().message()), StartsWith(Path("c") + ": cannot rename"));
  }
  EXPECT_THAT(Listing(), ElementsAre("a", "c"));
  EXPECT_EQ(*ReadFile(Path("a")), "old");
}

TEST_F(StagedFilesTest, LinksAreFollowed) {
  std::ofstream(Path("target")) << "old";
  fs::create_symlink("target", Path("second"));
  fs::create_symlink(Path("second"), Path("link"));
  fs::create_symlink("not_yet", Path("dangling"));
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("dangling"), "first").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_TRUE(fs::is_symlink(Path("second")));
  EXPECT_EQ(*ReadFile(Path("target")), "new");
  EXPECT_TRUE(fs::is_symlink(Path("dangling")));
  EXPECT_EQ(*ReadFile(Path("not_yet")), "first");
}

TEST_F(StagedFilesTest, LinksInACircleAreAnError) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  EXPECT_THAT(std::string(WriteFileAtomically(Path("a"), "x").message()),
              HasSubstr("too many symbolic links"));
  EXPECT_TRUE(fs::is_symlink(Path("a")));
  EXPECT_TRUE(fs::is_symlink(Path("b")));
}

TEST_F(StagedFilesTest, PermissionsAreKept) {
  std::ofstream(Path("a")) << "old";
  chmod(Path("a").c_str(), 0640);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_EQ(static_cast<int>(fs::status(Path("a")).permissions()), 0640);
}

TEST_F(StagedFilesTest, PipesAreWrittenInPlace) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(WriteFileAtomically(Path("pipe"), "text").ok());
  std::string text(8, ' ');
  EXPECT_EQ(read(reader, text.data(), text.size()), 4);
  close(reader);
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
}

TEST_F(StagedFilesTest, AFullDeviceIsAnErrorAndLeavesNoFile) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  {
    StagedFiles files;
    ASSERT_TRUE(files.Add(Path("a"), "x").ok());
    ASSERT_TRUE(files.Add("/dev/full", "x").ok());
    EXPECT_THAT(std::string(files.Commit().message()),
                StartsWith("/dev/full: cannot write: No space"));
  }
  EXPECT_THAT(Listing(), IsEmpty());
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(StagedFilesTest, AFileOverTheLimitIsAnErrorAndLeavesNothing) {
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = WriteFileAtomically(Path("a"), std::string(5000, 'x'));
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(std::string(status.message()), StartsWith(Path("a") + ": cannot write: File too"));
  EXPECT_THAT(Listing(), IsEmpty());
}

TEST_F(StagedFilesTest, TheLongestNameIsWritten) {
  const std::string longest(255, 'n');
  EXPECT_TRUE(WriteFileAtomically(Path(longest), "x").ok());
  EXPECT_FALSE(WriteFileAtomically(Path(longest + "n"), "x").ok());
  EXPECT_THAT(Listing(), ElementsAre(longest));
}

TEST_F(StagedFilesTest, IdentityIsThatOfTheFileNotOfItsSpelling) {
  std::ofstream(Path("file")) << "x";
  fs::create_symlink("file", Path("link"));
  fs::create_hard_link(Path("file"), Path("hard"));
  fs::create_directory(Path("folder"));
  fs::create_symlink("folder/new", Path("dangling"));
  EXPECT_EQ(FileIdentity(Path("file")), FileIdentity(Path("link")));
  EXPECT_EQ(FileIdentity(Path("file")), FileIdentity(Path("hard")));
  EXPECT_EQ(FileIdentity(Path("file")), FileIdentity(Path("folder/../file")));
  EXPECT_NE(FileIdentity(Path("file")), FileIdentity(Path("folder")));
  EXPECT_EQ(FileIdentity(Path("folder/new")), FileIdentity(Path("dangling")));
  EXPECT_EQ(FileIdentity(Path("no/such")), FileIdentity(Path("no/./such/")));
  EXPECT_NE(FileIdentity(Path("no/such")), FileIdentity(Path("no/other")));
  EXPECT_EQ(FileIdentity("new"), FileIdentity("./new"));
  EXPECT_EQ(FileIdentity("/dev/null"), "");
}

}  // namespace
}  // namespace optimus
