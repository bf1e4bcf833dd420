// What two ranks say and how they end when something goes wrong between them. Starts them itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace optimus::executor {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  std::string text;
  int exit_code = 0;
};

Outcome RunFault(const std::string& fault) {
  const std::string command = std::string("timeout -k 5 60 " MPI_LAUNCHER " 2 " FAULT_PROGRAM " ") +
                              fault + " 2>&1 </dev/null";
  Outcome outcome;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {"popen failed", -1};
  std::array<char, 4096> piece{};
  for (std::size_t n = 0; (n = fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    outcome.text.append(piece.data(), n);
  }
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

// Each rank says so: "rank N: <code>: ... <both operations>".
TEST(FaultsTest, CollectivesThatDoNotMatchNameBothOperations) {
  const Outcome outcome = RunFault("other_micro_batch");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("rank 0: DATA_LOSS: collective 0 of group 'world' is not the same on "
                              "all ranks: rank 0 does op10 (all_reduce 0 of 1048576 bytes) meets "
                              "rank 1 does op11 (all_reduce 0 of 1048576 bytes)"),
                    HasSubstr("rank 1: DATA_LOSS: collective 0 of group 'world' is not the same on "
                              "all ranks: rank 1 does op11")));
}

TEST(FaultsTest, CollectivesOfOtherKindAndSizeNameBoth) {
  const Outcome outcome = RunFault("other_kind");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 0: DATA_LOSS"), HasSubstr("rank 1: DATA_LOSS"),
                                  HasSubstr("rank 0 does op10 (all_gather 0 of 3000000 bytes)"),
                                  HasSubstr("rank 1 does op11 (all_reduce 0 of 10000 bytes)")));
}

TEST(FaultsTest, MessageOfAnotherOperationNamesBoth) {
  const Outcome outcome = RunFault("wrong_message");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(
      outcome.text,
      HasSubstr("rank 1: DATA_LOSS: message of rank 0: expected rank 0 does op88 (message 5 "
                "of 100000 bytes), got rank 0 does op77 (message 5 of 100000 bytes)"));
}

TEST(FaultsTest, ReceiveThatNobodyAnnounced) {
  EXPECT_THAT(RunFault("not_expected").text,
              HasSubstr("message 5 of rank 0 was not announced by Communicator::Expect"));
}

TEST(FaultsTest, PatienceRunsOutAndNamesWhoIsMissing) {
  const Outcome outcome = RunFault("one_does_not_come");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.text,
              HasSubstr("rank 0: DEADLINE_EXCEEDED: Barrier: no answer from rank 1 after 300ms"));
}

TEST(FaultsTest, TheTicksErrorEndsTheWait) {
  const Outcome outcome = RunFault("tick_stops");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.text, HasSubstr("rank 0: CANCELLED: the tick says stop"));
}

TEST(FaultsTest, CallsOfTheWorldThatDoNotMatch) {
  const Outcome outcome = RunFault("other_call");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.text, HasSubstr("rank 0: INTERNAL: rank 1 is in Gather (call 1 of the world) "
                                      "while rank 0 is in Barrier (call 1 of the world); hint: all "
                                      "ranks must be started with the same arguments"));
}

TEST(FaultsTest, GroupsThatDoNotMatch) {
  const Outcome outcome = RunFault("other_split");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 0: DATA_LOSS: ranks split differently: rank 0 "
                                            "asks for group 'dp' of ranks 0, 1, another for group "
                                            "'tp' of ranks 0, 1"),
                                  HasSubstr("rank 1: DATA_LOSS: ranks split differently")));
}

// Neither the step nor the end of the process waits for a rank that answers nothing.
TEST(FaultsTest, ARankThatAnswersNothingHoldsNobody) {
  const Outcome outcome = RunFault("one_stops");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.exit_code, 124);  // of timeout
  EXPECT_THAT(outcome.text, HasSubstr("rank 0: DEADLINE_EXCEEDED: the step did not end"));
}

}  // namespace
}  // namespace optimus::executor
