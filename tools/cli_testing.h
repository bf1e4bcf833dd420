#pragma once
// Runs the built command as a user does: for the tests of the command.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/testing_folder.h"

namespace optimus::tools {

// A small LLM on 16 GPUs.
inline constexpr const char* kGpt = R"(
name: "small"
llm: "gpt-11b"
hardware { profile: "h100-80gb" gpus: 16 }
batch { global_batch: 8 micro_batch: 1 sequence_length: 2048 }
plan {
  data_parallel: 2
  pipeline_parallel: 2
  tensor_parallel: 4
  schedule: ONE_F_ONE_B
  layout: EQUAL_LAYERS
  recompute: RECOMPUTE_FULL
}
)";

struct Result {
  int exit_code = -1;
  std::string out, err;
};

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(folder_.path().empty());
    std::filesystem::create_directory(folder_.path() / "work");
  }

  // Arguments are put into a shell line as they are. $W is a folder for inputs and outputs.
  Result Run(const std::string& arguments, const std::string& redirect = "",
             const std::string& before = "") {
    const std::string out = folder_.path() / "stdout", err = folder_.path() / "stderr";
    const std::string line =
        absl::StrCat("W=", Work(), "; exec </dev/null; ", before, OPTIMUS_BINARY, " ", arguments,
                     " >", out, " 2>", err, " ", redirect);
    const int status = std::system(line.c_str());
    Result result;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.out = ReadFile(out).value_or("");
    result.err = ReadFile(err).value_or("");
    return result;
  }

  std::string Work() const { return (folder_.path() / "work").string(); }

  std::string Write(const std::string& name, const std::string& content) {
    std::string path = absl::StrCat(Work(), "/", name);
    std::ofstream(path) << content;
    return path;
  }

  // The experiment above with one text replaced.
  std::string WriteChanged(const std::string& from, const std::string& to) {
    EXPECT_THAT(kGpt, ::testing::HasSubstr(from));
    return Write("e.textproto", absl::StrReplaceAll(kGpt, {{from, to}}));
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Work())) {
      names.push_back(std::filesystem::relative(entry.path(), Work()).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // One line on standard error, exit 1, nothing on standard output, no new file.
  void ExpectOneLineError(const std::string& arguments, const std::vector<std::string>& words) {
    const std::vector<std::string> before = Files();
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_TRUE(result.out.empty());
    EXPECT_THAT(result.err, ::testing::StartsWith("optimus: error: "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, ::testing::EndsWith("\n"));
    for (const std::string& word : words) EXPECT_THAT(result.err, ::testing::HasSubstr(word));
    EXPECT_EQ(Files(), before);
  }
  void ExpectBadInput(const std::string& arguments, const std::vector<std::string>& words) {
    ExpectOneLineError(absl::StrCat("simulate ", arguments, " --out=$W/out --json"), words);
  }

 private:
  TestingFolder folder_;
};

}  // namespace optimus::tools
