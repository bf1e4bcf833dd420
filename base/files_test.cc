#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "google/protobuf/wrappers.pb.h"

namespace optimus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  Files() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(::testing::TempDir()) /
           ("files_test_" + std::to_string(getpid()) + "_" + test->name());
    fs::create_directories(dir_);
  }
  ~Files() override { fs::remove_all(dir_); }
  std::string Path(const std::string& name) const { return (dir_ / name).string(); }
  std::vector<std::string> Listing() const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(dir_)) names.push_back(e.path().filename());
    return names;
  }

 private:
  fs::path dir_;
};

TEST_F(Files, WriteThenRead) {
  const std::string content("two\nlines\0and a zero", 20);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), content).ok());
  EXPECT_EQ(*ReadFile(Path("a")), content);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "shorter").ok());
  EXPECT_EQ(*ReadFile(Path("a")), "shorter");
  EXPECT_THAT(Listing(), ::testing::ElementsAre("a"));
}

TEST_F(Files, MissingFile) {
  const absl::Status status = ReadFile(Path("none")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith(Path("none") + ": "), HasSubstr("No such file")));
}

TEST_F(Files, DirectoryIsNotAFile) {
  const absl::Status status = ReadFile(Path("")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a directory"));
}

TEST_F(Files, FailedWriteLeavesNothing) {
  const absl::Status status = WriteFileAtomically(Path("no_such_dir/a"), "x");
  EXPECT_THAT(std::string(status.message()), StartsWith(Path("no_such_dir/a") + ": cannot write"));
  EXPECT_THAT(Listing(), IsEmpty());
}

TEST_F(Files, FailedRenameLeavesTheOldAndNoTemporary) {
  // A directory that is not empty cannot be replaced by a file.
  fs::create_directories(Path("taken/inside"));
  const absl::Status status = WriteFileAtomically(Path("taken"), "x");
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot rename into place"));
  EXPECT_THAT(Listing(), ::testing::ElementsAre("taken"));
  EXPECT_TRUE(fs::is_directory(Path("taken/inside")));
}

TEST_F(Files, FullDiskIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  // The temporary file beside the target is the device that is always full.
  fs::create_symlink("/dev/full", Path("a.tmp." + std::to_string(getpid())));
  EXPECT_FALSE(WriteFileAtomically(Path("a"), "x").ok());
  EXPECT_FALSE(fs::exists(Path("a")));
  EXPECT_THAT(Listing(), IsEmpty());
}

TEST_F(Files, TextProto) {
  std::ofstream(Path("good")) << "# a comment\nvalue: 7\n";
  google::protobuf::Int32Value message;
  ASSERT_TRUE(ReadTextProto(Path("good"), message).ok());
  EXPECT_EQ(message.value(), 7);
}

TEST_F(Files, BadTextProtoNamesFileLineAndColumn) {
  std::ofstream(Path("bad")) << "value: 7\n  colour: 3\n";
  google::protobuf::Int32Value message;
  const absl::Status status = ReadTextProto(Path("bad"), message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  // Protobuf reports the position just behind the field's name.
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith(Path("bad") + ":2:9: "), HasSubstr("colour")));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("\n")));
}

TEST_F(Files, MissingTextProtoIsNotFound) {
  google::protobuf::Int32Value message;
  EXPECT_EQ(ReadTextProto(Path("none"), message).code(), absl::StatusCode::kNotFound);
}

TEST(DataDir, EnvironmentWins) {
  unsetenv("OPTIMUS_DATA_DIR");
  EXPECT_TRUE(fs::exists(fs::path(DataDir()) / "hw_profiles/zoo"));
  setenv("OPTIMUS_DATA_DIR", "/elsewhere", 1);
  EXPECT_EQ(DataDir(), "/elsewhere");
  setenv("OPTIMUS_DATA_DIR", "", 1);
  EXPECT_NE(DataDir(), "");
  unsetenv("OPTIMUS_DATA_DIR");
}

}  // namespace
}  // namespace optimus
