// `optimus run` as one of the ranks that torchrun's variables make, without the others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/torchrun/testing_processes.h"
#include "tools/cli_testing.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] = "run examples/cpu/pp2_1f1b.textproto --backend=cuda";

class CliJoinTest : public CliTest {
 protected:
  // Only these variables are set.
  Result RunWith(const std::string& variables, const std::string& arguments,
                 const std::string& redirect = "") {
    return Run(arguments, redirect,
               absl::StrCat("env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u LOCAL_WORLD_SIZE "
                            "-u MASTER_ADDR -u MASTER_PORT -u OPTIMUS_PORT ",
                            variables, " "));
  }
  void ExpectRefused(const std::string& variables, const std::string& arguments,
                     const std::vector<std::string>& words, int exit_code = 1) {
    const Result result = RunWith(variables, arguments);
    EXPECT_EQ(result.exit_code, exit_code) << variables;
    EXPECT_THAT(result.err, ::testing::StartsWith("optimus: error: ")) << variables;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& word : words) EXPECT_THAT(result.err, HasSubstr(word)) << variables;
  }
  static std::string RankOne(const std::string& address) {
    return absl::StrCat("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=", address,
                        " OPTIMUS_PORT=", executor::FreePort());
  }
};

// No other rank knows of it, so it does not matter which one this is.
TEST_F(CliJoinTest, EveryRankSaysWhatIsWrongWithItsEnvironment) {
  ExpectRefused("RANK=5 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=9",
                kRun, {"rank 5: RANK is '5'; must be a whole number from 0 to 1 by WORLD_SIZE 2"});
  ExpectRefused("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=a MASTER_PORT=9", kRun,
                {"rank 1: LOCAL_WORLD_SIZE is not set", "; hint: "});
  ExpectRefused(RankOne("no.such.host.invalid"), kRun, {"rank 1", "no.such.host.invalid", "hint"});
}

TEST_F(CliJoinTest, WhatIsMissingIsNamed) {
  ExpectRefused("RANK=0 WORLD_SIZE=2", kRun, {"MASTER_ADDR and MASTER_PORT are not set"});
  ExpectRefused("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_PORT=9", kRun,
                {"rank 0: MASTER_ADDR is not set, but ", "; hint: torchrun sets them all"});
}

// The same at all ranks, so the first one says it.
TEST_F(CliJoinTest, BackendsThatNeedMpiSaySoOnce) {
  const std::string run = "run examples/cpu/pp2_1f1b.textproto --backend=emulated";
  ExpectRefused("RANK=0 WORLD_SIZE=2", run, {"talk over MPI", "mpirun"});
  const Result other = RunWith("RANK=1 WORLD_SIZE=2", run);
  EXPECT_EQ(other.exit_code, 1);
  // No rank 0 is there to say it, which could be on another host.
  EXPECT_THAT(other.err, HasSubstr("optimus: error: rank 1: RANK and WORLD_SIZE are set"));
}

// Such as a batch script or a shell may have set for something else.
TEST_F(CliJoinTest, StrayVariablesMakeNoRank) {
  for (const char* variables : {"RANK=3", "WORLD_SIZE=8 MASTER_ADDR=a MASTER_PORT=9"}) {
    ExpectRefused(variables, "run examples/cpu/pp2_1f1b.textproto --backend=emulated",
                  {"this schedule needs 2 ranks", "1 was started"});
  }
}

TEST_F(CliJoinTest, TheTimeoutEndsTheWaitForOthers) {
  ExpectRefused(RankOne("127.0.0.1"), absl::StrCat(kRun, " --timeout=1s"),
                {"rank 1 cannot join rank 0 at 127.0.0.1:", " within 1s: "}, 3);
  ExpectRefused(absl::StrCat("RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 "
                             "MASTER_ADDR=127.0.0.1 OPTIMUS_PORT=",
                             executor::FreePort()),
                absl::StrCat(kRun, " --timeout 1s"),
                {"ranks 1-3 of 4 did not come to rank 0 within 1s"}, 3);
}

TEST_F(CliJoinTest, AWaitIsSaidAndEndsBySigterm) {
  const Result result =
      RunWith(RankOne("127.0.0.1"), kRun,
              "2>$W/err & pid=$!; until grep -q 'optimus: rank 1 waits' $W/err; do sleep 0.1; kill "
              "-0 $pid || break; done; kill $pid; wait $pid");
  EXPECT_EQ(result.exit_code, 3);
  const std::string err = ReadFile(Work() + "/err").value_or("");
  EXPECT_THAT(err, HasSubstr("optimus: rank 1 waits for rank 0 at 127.0.0.1:"));
  EXPECT_THAT(err, HasSubstr("(gives up after 5m)\noptimus: error: asked to stop (SIGTERM) while "
                             "rank 1 waits for rank 0 at 127.0.0.1:"));
}

}  // namespace
}  // namespace optimus::tools
