#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/struct.pb.h"
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

TEST_F(Files, EmptyNamesAndFilesAreRefused) {
  EXPECT_THAT(std::string(ReadFile("").status().message()), HasSubstr("name of a file"));
  std::ofstream(Path("empty")) << "";
  EXPECT_EQ(ReadFile(Path("empty")).status(),
            absl::InvalidArgumentError(Path("empty") + ": is empty"));
}

TEST_F(Files, PipesAndDevicesAreRefusedAtOnce) {
  // Reading them would block, or never end.
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {Path("pipe"), std::string("/dev/zero")}) {
    const absl::Status status = ReadFile(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith(path + ": is a device or pipe"));
  }
}

TEST_F(Files, AFailedReadIsAnError) {
  // Address 0 of a process cannot be read: EIO.
  EXPECT_THAT(std::string(ReadFile("/proc/self/mem").status().message()),
              StartsWith("/proc/self/mem: cannot read: Input/output error"));
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

TEST_F(Files, InvalidUtf8NamesFileAndField) {
  std::ofstream(Path("bad")) << R"(fields { key: "a" value { string_value: "\xff" } })";
  google::protobuf::Struct message;
  EXPECT_THAT(std::string(ReadTextProto(Path("bad"), message).message()),
              AllOf(StartsWith(Path("bad") + ": fields[0].value.string_value: "),
                    HasSubstr("not valid UTF-8")));
  std::ofstream(Path("good")) << R"(paths: "gr\303\266\303\237e" paths: "größe")";
  google::protobuf::FieldMask mask;
  EXPECT_TRUE(ReadTextProto(Path("good"), mask).ok());
  std::ofstream(Path("good")) << R"(paths: "a" paths: "\300\257")";  // overlong
  EXPECT_THAT(std::string(ReadTextProto(Path("good"), mask).message()), HasSubstr(": paths[1]: "));
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

TEST(KnownNamesTest, AnEmptyFolderIsExplainedByTheVariable) {
  EXPECT_EQ(KnownNames({"a", "b"}, "/zoo"), "known: a, b (from /zoo)");
  unsetenv("OPTIMUS_DATA_DIR");
  EXPECT_THAT(KnownNames({}, "/zoo"), AllOf(HasSubstr("/zoo"), HasSubstr("set the environment")));
  setenv("OPTIMUS_DATA_DIR", "/elsewhere", 1);
  EXPECT_THAT(KnownNames({}, "/elsewhere/zoo"),
              AllOf(HasSubstr("/elsewhere/zoo"), HasSubstr("OPTIMUS_DATA_DIR leads there")));
  unsetenv("OPTIMUS_DATA_DIR");
}

}  // namespace
}  // namespace optimus
