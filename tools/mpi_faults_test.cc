// What happens to a run when a rank dies or stands still.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tools/mpi_testing.h"

namespace optimus::tools {
namespace {

using ::testing::HasSubstr;

class MpiFaultsTest : public MpiTest {
 protected:
  struct Outcome {
    int exit_code = -1;
    int seconds = -1;  // from the fault to the end of mpirun
    std::string err;
  };

  // Starts `arguments` on two ranks, waits until they are at `phase`, sends `signal` to `ranks` (as
  // a pattern), and waits for the end. On a busy machine getting there takes longer: then it is
  // done again. Standard input stays open and empty.
  Outcome Hurt(const std::string& signal, const std::string& ranks, const std::string& phase,
               const std::string& arguments) {
    Outcome outcome;
    for (const int seconds : {2, 6, 18, 36}) {
      outcome = HurtAfter(seconds, signal, ranks, arguments);
      if (Count(outcome.err, phase) > 0) break;
    }
    return outcome;
  }

  Outcome HurtAfter(int seconds, const std::string& signal, const std::string& ranks,
                    const std::string& arguments) {
    const std::string script =
        absl::StrCat("mkfifo -m 600 $W/in 2>/dev/null\nsleep 1000 >$W/in &\nopener=$!\n", Launch(2),
                     OPTIMUS_BINARY, " ", arguments, " <$W/in >$W/out 2>$W/err &\n",
                     R"sh(launcher=$!
# The ranks are children of mpirun, which is a child of timeout.
ranks() { ps -eo pid=,ppid=,comm= | awk -v top=$launcher '
  { parent[$1] = $2; name[$1] = $3 }
  END { for (p in parent) if (name[p] == "optimus" && parent[parent[p]] == top) print p }'; }
until [ "$(ranks | wc -l)" = 2 ]; do
  kill -0 $launcher 2>/dev/null || break
  sleep 0.2
done
sleep $wait
for pid in $(ranks); do
  if tr '\0' '\n' </proc/$pid/environ | grep -qx OMPI_COMM_WORLD_RANK=)sh",
                     ranks, "; then kill -", signal, R"sh( $pid; fi
done
begin=$SECONDS
wait $launcher
echo "$? $((SECONDS - begin))" >$W/outcome
kill $opener
)sh");
    Write("script.sh", absl::StrCat("W=", Work(), "\nwait=", seconds, "\n", script));
    EXPECT_EQ(std::system(absl::StrCat("bash ", Work(), "/script.sh").c_str()), 0);
    Outcome outcome;
    outcome.err = ReadFile(Work() + "/err").value_or("");
    const std::string text = ReadFile(Work() + "/outcome").value_or("-1 -1");
    EXPECT_EQ(std::sscanf(text.c_str(), "%d %d", &outcome.exit_code, &outcome.seconds), 2) << text;
    return outcome;
  }

  // All have ended in time, with one error, which says this.
  static void ExpectReport(const Outcome& outcome, const std::vector<std::string>& words) {
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_NE(outcome.exit_code, 124);  // of timeout
    EXPECT_LE(outcome.seconds, 15);
    EXPECT_EQ(Count(outcome.err, "optimus: error: "), 1) << outcome.err;
    for (const std::string& word : words) EXPECT_THAT(outcome.err, HasSubstr(word));
  }
};

constexpr char kLongRun[] = "run examples/cpu/pp2_1f1b.textproto --backend=cpu --iterations=100000";

constexpr char kRuns[] = "runs the schedule";
// Rank 0 waits for its input: outside a step, and it does not look after the others meanwhile.
constexpr char kPlanning[] = "run /dev/stdin --backend=cpu --timeout=3s";
constexpr char kPlans[] = "rank 0's plan";

TEST_F(MpiFaultsTest, KilledRankEndsAllAndIsNamed) {
  const Outcome outcome = Hurt("KILL", "1", kRuns, kLongRun);
  // What it was at last: an operation, or the wait before a step.
  ExpectReport(outcome, {"rank 1", "it was at ", "step "});
}

TEST_F(MpiFaultsTest, RankThatStandsStillIsReportedWithEveryRanksOperation) {
  const Outcome outcome = Hurt("STOP", "1", kRuns, absl::StrCat(kLongRun, " --timeout=3s"));
  ExpectReport(outcome, {"rank 0", "rank 1"});
}

TEST_F(MpiFaultsTest, RankZeroThatStandsStillOutsideAStepIsReported) {
  const Outcome outcome = Hurt("STOP", "0", kPlans, kPlanning);
  ExpectReport(outcome, {"rank 0 is stopped (SIGSTOP), for 3s", "): stopped (SIGSTOP); reads its",
                         "): waits for rank 0's plan"});
}

TEST_F(MpiFaultsTest, KilledRankIsNamedWhileRankZeroIsBusy) {
  const Outcome outcome = Hurt("KILL", "1", kPlans, kPlanning);
  ExpectReport(outcome,
               {"rank 1 (", ") is gone (killed or crashed); it was at waits for rank 0's"});
}

TEST_F(MpiFaultsTest, TerminationIsAnsweredOutsideAStep) {
  const Outcome outcome = Hurt("TERM", "[01]", kPlans, kPlanning);
  ExpectReport(outcome, {"asked to stop (SIGTERM)", "reads its input and plans"});
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST_F(MpiFaultsTest, TerminationOfOneRankIsAnsweredByIt) {
  ExpectReport(Hurt("TERM", "1", kRuns, kLongRun), {"rank 1 was asked to stop (SIGTERM)"});
}

TEST_F(MpiFaultsTest, KilledWhileItMeasuresIsNamedWithWhatItMeasured) {
  const std::string out = absl::StrCat(Work(), "/p.textproto");
  const Outcome outcome =
      Hurt("KILL", "1", "measures ",
           absl::StrCat("profile --backend=cpu --for=examples/cpu/pp2_1f1b.textproto "
                        "--repetitions=50000 --out=",
                        out));
  ExpectReport(outcome, {"rank 1 (", "it was at measures kernels"});
}

// What is no optimus never joins.
TEST_F(MpiFaultsTest, ARankThatNeverJoinsIsNamed) {
  for (const auto& [program, word] : std::vector<std::pair<std::string, std::string>>{
           {"sleep 1000", "rank 1 is the program 'sleep'"}, {"true", "rank 1 has ended"}}) {
    ExpectOneError(1, absl::StrCat(kLongRun, " --timeout=1s : -np 1 ", program),
                   {"the 2 ranks that mpirun started have not all joined after ", word, "; hint: "},
                   3);
  }
}

TEST_F(MpiFaultsTest, WhatIsWrongWithOneRankIsSaidByIt) {
  const std::string run = "run examples/cpu/pp2_1f1b.textproto --backend=cpu";
  ExpectOneError(1, absl::StrCat(run, " : -np 1 ", OPTIMUS_BINARY, " ", run, " --bogus"),
                 {"rank 1: unknown flag --bogus"});
  ExpectOneError(1, absl::StrCat(run, " --bogus : -np 1 ", OPTIMUS_BINARY, " ", run),
                 {"error: unknown flag --bogus"});
}

TEST_F(MpiFaultsTest, WhatIsWrongWithAllRanksIsSaidOnce) {
  ExpectOneError(2, "run examples/cpu/pp2_1f1b.textproto --backend=cpu --bogus",
                 {"error: unknown flag --bogus"});
}

TEST_F(MpiFaultsTest, RanksOfDifferentArgumentsAreToldSo) {
  const std::string run = "run examples/cpu/pp2_1f1b.textproto --backend=emulated --iterations=";
  ExpectOneError(1, absl::StrCat(run, "2 : -np 1 ", OPTIMUS_BINARY, " ", run, "4"),
                 {"hint: all ranks must be started with the same arguments"}, 3);
}

}  // namespace
}  // namespace optimus::tools
