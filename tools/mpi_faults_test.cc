// What happens to a run when a rank dies or stands still.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tools/mpi_testing.h"

namespace optimus::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MpiFaultsTest : public MpiTest {
 protected:
  struct Outcome {
    int exit_code = -1;
    int seconds = -1;  // from the fault to the end of mpirun
    std::string err;
  };

  // Starts `arguments` on two ranks, waits until both are at work, sends `signal` to rank 1, and
  // waits for the end. On a busy machine getting to work takes longer: then it is done again.
  Outcome Hurt(const std::string& signal, const std::string& arguments) {
    Outcome outcome;
    for (const int seconds : {4, 12, 36}) {
      outcome = HurtAfter(seconds, signal, arguments);
      if (Count(outcome.err, "runs the schedule") > 0) break;
    }
    return outcome;
  }

  Outcome HurtAfter(int seconds, const std::string& signal, const std::string& arguments) {
    const std::string script =
        absl::StrCat(Launch(2), OPTIMUS_BINARY, " ", arguments, " >$W/out 2>$W/err &\n",
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
  if tr '\0' '\n' </proc/$pid/environ | grep -qx OMPI_COMM_WORLD_RANK=1; then kill -)sh",
                     signal, R"sh( $pid; fi
done
begin=$SECONDS
wait $launcher
echo "$? $((SECONDS - begin))" >$W/outcome
)sh");
    Write("script.sh", absl::StrCat("W=", Work(), "\nwait=", seconds, "\n", script));
    EXPECT_EQ(std::system(absl::StrCat("bash ", Work(), "/script.sh").c_str()), 0);
    Outcome outcome;
    outcome.err = ReadFile(Work() + "/err").value_or("");
    const std::string text = ReadFile(Work() + "/outcome").value_or("-1 -1");
    EXPECT_EQ(std::sscanf(text.c_str(), "%d %d", &outcome.exit_code, &outcome.seconds), 2) << text;
    return outcome;
  }
};

constexpr char kLongRun[] = "run examples/cpu/pp2_1f1b.textproto --backend=cpu --iterations=100000";

TEST_F(MpiFaultsTest, KilledRankEndsAllAndIsNamed) {
  const Outcome outcome = Hurt("KILL", kLongRun);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LE(outcome.seconds, 15);
  EXPECT_EQ(Count(outcome.err, "optimus: error: "), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1"));
  // What it was at last: an operation, or the wait before a step.
  EXPECT_THAT(outcome.err, HasSubstr("it was at ")) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("step ")) << outcome.err;
}

TEST_F(MpiFaultsTest, RankThatStandsStillIsReportedWithEveryRanksOperation) {
  const Outcome outcome = Hurt("STOP", absl::StrCat(kLongRun, " --timeout=3s"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LE(outcome.seconds, 15);
  EXPECT_EQ(Count(outcome.err, "optimus: error: "), 1) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("rank 0"), HasSubstr("rank 1")));
}

}  // namespace
}  // namespace optimus::tools
