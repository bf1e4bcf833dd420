#pragma once
// Runs the built command under mpirun as a user does: for the tests on several ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/cli_testing.h"

namespace optimus::tools {

class MpiTest : public CliTest {
 protected:
  using Json = nlohmann::ordered_json;

  // What starts `ranks` of what follows. Open MPI itself leaks, and asks before it runs as root;
  // ranks pin themselves.
  static std::string Launch(int ranks) {
    return absl::StrCat(
        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; "
        "export ASAN_OPTIONS=detect_leaks=0; timeout 100 mpirun --oversubscribe --bind-to none "
        "-np ",
        ranks, " ");
  }
  Result RunRanks(int ranks, const std::string& arguments) {
    return Run(arguments, "", Launch(ranks));
  }
  Json JsonOfRanks(int ranks, const std::string& arguments, int exit_code = 0) {
    const Result result = RunRanks(ranks, absl::StrCat(arguments, " --json"));
    EXPECT_EQ(result.exit_code, exit_code) << result.err << result.out;
    Json json = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << result.out;
    return json;
  }

  // How often a text is there; mpirun adds lines of its own to ours.
  static int Count(const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
      ++count;
    }
    return count;
  }
  // All ranks end with `exit_code`, and exactly one line of ours says why.
  void ExpectOneError(int ranks, const std::string& arguments,
                      const std::vector<std::string>& words, int exit_code = 1) {
    const Result result = RunRanks(ranks, arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_TRUE(result.out.empty()) << result.out;
    EXPECT_EQ(Count(result.err, "optimus: error: "), 1) << result.err;
    for (const std::string& word : words) EXPECT_THAT(result.err, ::testing::HasSubstr(word));
  }
};

}  // namespace optimus::tools
