#include "executor/watch/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status_macros.h"
#include "executor/watch/guard.h"
#include "executor/watch/testing.h"

namespace optimus::executor {
namespace {

using testing::ForkedRanks;
using ::testing::HasSubstr;
using testing::SharedState;
using testing::SharedWorld;
using ::testing::StartsWith;

// A rank that follows a step without end: its progress goes up until the test says that it hangs.
absl::Status FollowAStep(SharedWorld& world, SharedState& state, absl::Duration timeout) {
  HoldTerminationSignals();
  OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Watchdog> watchdog,
                           Watchdog::Create(world, timeout));
  const int rank = world.rank();
  std::int64_t progress = 0;
  watchdog->Follow(
      "step 3", [rank] { return absl::StrCat("compute: operation ", 10 * rank); },
      [&] { return state.hang[rank] ? progress : ++progress; });
  while (true) {
    OPTIMUS_RETURN_IF_ERROR(watchdog->Tick());
    state.ready[rank] = true;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

ForkedRanks::Body Following(absl::Duration timeout) {
  return [timeout](SharedWorld& world, SharedState& state) {
    return FollowAStep(world, state, timeout);
  };
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

TEST(WatchdogTest, AKilledRankIsNamedWithWhatItWasAt) {
  ForkedRanks ranks(3, 3, Following(absl::Hours(1)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(1, SIGKILL);
  const absl::Status report = ranks.ResultOf(0);
  EXPECT_TRUE(absl::IsAborted(report));
  EXPECT_EQ(Text(report),
            "rank 1 (node0) is gone (killed or crashed); it was at step 3: compute: operation 10");
  EXPECT_TRUE(absl::IsAborted(ranks.ResultOf(2)));
  EXPECT_EQ(Text(ranks.ResultOf(2)), "");
}

TEST(WatchdogTest, TheLowestLivingRankOfTheNodeSpeaks) {
  ForkedRanks ranks(5, 3, [](SharedWorld& world, SharedState& state) {
    // Ranks 3 and 4 are a node of their own.
    class TwoNodes : public SharedWorld {
     public:
      using SharedWorld::SharedWorld;
      int local_size() const override { return rank() < 3 ? 3 : 2; }
    };
    TwoNodes two_nodes(state, world.rank(), 5, 3);
    return FollowAStep(two_nodes, state, absl::Hours(1));
  });
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(0, SIGKILL);
  const absl::Status report = ranks.ResultOf(1);
  EXPECT_TRUE(absl::IsAborted(report));
  EXPECT_THAT(Text(report), StartsWith("rank 0 (node0) is gone"));
  EXPECT_EQ(Text(ranks.ResultOf(2)), "");
  // The other node goes on until the launcher ends it.
  EXPECT_EQ(ranks.state().codes[3], -1);
  EXPECT_EQ(ranks.state().codes[4], -1);
}

TEST(WatchdogTest, AStoppedRankDoesNotSpeak) {
  ForkedRanks ranks(3, 3, Following(absl::Hours(1)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(0));
  ranks.Signal(2, SIGKILL);
  EXPECT_THAT(Text(ranks.ResultOf(1)), StartsWith("rank 2 (node0) is gone"));
}

TEST(WatchdogTest, AHangIsReportedByRankZeroWithEveryRank) {
  ForkedRanks ranks(4, 2, Following(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  for (auto& hang : ranks.state().hang) hang = true;
  const absl::Status report = ranks.ResultOf(0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(report));
  EXPECT_THAT(Text(report),
              StartsWith("no operation has ended for 500ms; hint: raise --timeout if an operation "
                         "can take that long"));
  EXPECT_EQ(Text(report).substr(Text(report).find("; every rank")),
            "; every rank is at:\n"
            "rank 0 (node0): step 3: compute: operation 0\n"
            "rank 1 (node0): step 3: compute: operation 10\n"
            "rank 2 (node1): step 3: compute: operation 20\n"
            "rank 3 (node1): step 3: compute: operation 30");
  for (int rank = 1; rank < 4; ++rank) {
    EXPECT_FALSE(ranks.ResultOf(rank).ok());
    EXPECT_EQ(Text(ranks.ResultOf(rank)), "") << rank;
  }
}

TEST(WatchdogTest, RanksThatHangAtTheSameAreReportedTogether) {
  ForkedRanks ranks(4, 4, [](SharedWorld& world, SharedState& state) -> absl::Status {
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Watchdog> watchdog,
                             Watchdog::Create(world, absl::Milliseconds(500)));
    std::string at =
        world.rank() == 0 ? "compute: fc1 runs" : absl::StrCat("waits for rank ", world.rank() - 1);
    watchdog->Follow(
        "step 3", [&at] { return at; }, [] { return 0; });
    state.ready[world.rank()] = true;
    while (true) {
      OPTIMUS_RETURN_IF_ERROR(watchdog->Tick());
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  EXPECT_THAT(Text(ranks.ResultOf(0)),
              HasSubstr("; every rank is at:\nrank 0 (node0): step 3: compute: fc1 runs\n"
                        "ranks 1-3 (node0): step 3: waits for ranks 0-2"));
}

// Rank 0 is outside the hang, and on another node.
TEST(WatchdogTest, RankZeroSpeaksForAHangElsewhere) {
  ForkedRanks ranks(2, 1, Following(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.state().hang[1] = true;
  const absl::Status report = ranks.ResultOf(0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(report));
  EXPECT_THAT(Text(report), HasSubstr("\nrank 1 (node1): step 3: compute: operation 10"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ranks.ResultOf(1)));
  EXPECT_EQ(Text(ranks.ResultOf(1)), "");
}

TEST(WatchdogTest, AStoppedRankIsReadOffTheBoardOfItsNode) {
  ForkedRanks ranks(4, 2, Following(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(1));
  ASSERT_TRUE(ranks.Stop(3));
  for (auto& hang : ranks.state().hang) hang = true;
  const absl::Status report = ranks.ResultOf(0);
  EXPECT_THAT(Text(report), HasSubstr("\nrank 1 (node0): stopped (SIGSTOP); step 3: compute: "
                                      "operation 10\n"));
  EXPECT_THAT(Text(report), HasSubstr("\nrank 2 (node1): step 3: compute: operation 20\n"));
  EXPECT_THAT(Text(report), HasSubstr("\nrank 3 (node1): stopped (SIGSTOP); step 3: compute: "
                                      "operation 30"));
}

TEST(WatchdogTest, WhoDoesNotAnswerIsNamed) {
  ForkedRanks ranks(2, 1, Following(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(1));
  ranks.state().hang[0] = true;
  EXPECT_THAT(Text(ranks.ResultOf(0)), HasSubstr("\nrank 1 (node1): no answer"));
}

TEST(WatchdogTest, WhereRankZeroIsStoppedAnotherSpeaks) {
  ForkedRanks ranks(3, 3, Following(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(0));
  for (auto& hang : ranks.state().hang) hang = true;
  std::vector<std::string> reports;
  for (int rank = 1; rank < 3; ++rank) {
    EXPECT_FALSE(ranks.ResultOf(rank).ok());
    if (!Text(ranks.ResultOf(rank)).empty()) reports.push_back(Text(ranks.ResultOf(rank)));
  }
  ASSERT_EQ(reports.size(), 1);
  EXPECT_THAT(reports[0], HasSubstr("\nrank 0 (node0): stopped (SIGSTOP); step 3"));
  EXPECT_THAT(reports[0], HasSubstr("\nrank 2 (node0): step 3: compute: operation 20"));
}

TEST(WatchdogTest, WhoMakesProgressHasNotHung) {
  ForkedRanks ranks(2, 2, Following(absl::Milliseconds(300)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  absl::SleepFor(absl::Seconds(1));
  EXPECT_EQ(ranks.state().codes[0], -1);
  EXPECT_EQ(ranks.state().codes[1], -1);
}

TEST(WatchdogTest, ARankThatWasStoppedForAWhileHasNotHung) {
  ForkedRanks ranks(1, 1, Following(absl::Milliseconds(1500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.state().hang[0] = true;
  ASSERT_TRUE(ranks.Stop(0));
  absl::SleepFor(absl::Seconds(3));
  ranks.state().hang[0] = false;
  ranks.Signal(0, SIGCONT);
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(ranks.state().codes[0], -1);
}

TEST(WatchdogTest, ATerminationSignalIsAnsweredByRankZeroOnly) {
  ForkedRanks ranks(2, 2, Following(absl::Hours(1)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(0, SIGTERM);
  ranks.Signal(1, SIGTERM);
  const absl::Status report = ranks.ResultOf(0);
  EXPECT_TRUE(absl::IsCancelled(report));
  EXPECT_EQ(Text(report),
            "asked to stop (SIGTERM); the ranks of this node are at:\n"
            "rank 0 (node0): step 3: compute: operation 0\n"
            "rank 1 (node0): step 3: compute: operation 10");
  EXPECT_EQ(Text(ranks.ResultOf(1)), "");
}

// A launcher sends SIGTERM to all when one has died: that one is what counts.
TEST(WatchdogTest, ADeathIsReportedAlsoWhenTheLauncherIsQuicker) {
  ForkedRanks ranks(3, 3, Following(absl::Hours(1)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(ranks.Stop(rank));
    ranks.Signal(rank, SIGTERM);
  }
  ranks.Signal(2, SIGKILL);
  for (const int rank : {0, 1}) ranks.Signal(rank, SIGCONT);
  EXPECT_TRUE(absl::IsAborted(ranks.ResultOf(0)));
  EXPECT_THAT(Text(ranks.ResultOf(0)), StartsWith("rank 2 (node0) is gone"));
  EXPECT_EQ(Text(ranks.ResultOf(1)), "");
}

// Rank 1 of another node dies; rank 0 hears of it with the launcher's signal.
TEST(WatchdogTest, ADeathOnAnotherNodeIsReportedThereOnly) {
  ForkedRanks ranks(4, 2, Following(absl::Hours(1)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(3, SIGKILL);
  EXPECT_THAT(Text(ranks.ResultOf(2)), StartsWith("rank 3 (node1) is gone"));
  EXPECT_FALSE(ranks.ResultOf(0).ok());
  EXPECT_EQ(Text(ranks.ResultOf(0)), "");
  EXPECT_EQ(Text(ranks.ResultOf(1)), "");
}

TEST(WatchdogTest, ARankThatPrintsItsOwnErrorIsNotReported) {
  ForkedRanks ranks(3, 3, [](SharedWorld& world, SharedState& state) -> absl::Status {
    if (world.rank() != 1) return FollowAStep(world, state, absl::Hours(1));
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Watchdog> watchdog,
                             Watchdog::Create(world, absl::Hours(1)));
    state.ready[1] = true;
    absl::SleepFor(absl::Milliseconds(100));
    watchdog->Failing();
    _exit(1);
  });
  for (const int rank : {0, 2}) {
    EXPECT_TRUE(absl::IsAborted(ranks.ResultOf(rank)));
    EXPECT_EQ(Text(ranks.ResultOf(rank)), "");
  }
}

TEST(WatchdogTest, ARankThatIsDoneIsNotMissed) {
  ForkedRanks ranks(2, 2, [](SharedWorld& world, SharedState& state) -> absl::Status {
    if (world.rank() != 1) return FollowAStep(world, state, absl::Hours(1));
    return Watchdog::Create(world, absl::Hours(1)).status();
  });
  EXPECT_TRUE(ranks.ResultOf(1).ok());
  ASSERT_TRUE(ForkedRanks::WaitFor([&] { return ranks.state().ready[0].load(); }));
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(ranks.state().codes[0], -1);
}

TEST(WatchdogTest, OutsideAStepNothingHangs) {
  ForkedRanks ranks(1, 1, [](SharedWorld& world, SharedState& state) -> absl::Status {
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Watchdog> watchdog,
                             Watchdog::Create(world, absl::Milliseconds(100)));
    watchdog->Follow("reads the schedule", nullptr, nullptr);
    for (int i = 0; i < 50; ++i) {
      OPTIMUS_RETURN_IF_ERROR(watchdog->Tick());
      absl::SleepFor(absl::Milliseconds(10));
    }
    // A phase without operations may be watched all the same.
    watchdog->Follow("waits at a barrier", nullptr, [] { return 0; });
    state.ready[0] = true;
    while (true) {
      OPTIMUS_RETURN_IF_ERROR(watchdog->Tick());
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  const absl::Status report = ranks.ResultOf(0);
  EXPECT_TRUE(ranks.state().ready[0]);
  EXPECT_TRUE(absl::IsDeadlineExceeded(report));
  EXPECT_THAT(Text(report), HasSubstr("\nrank 0 (node0): waits at a barrier"));
}

absl::Status TickForEver(Watchdog& watchdog) {
  while (true) {
    OPTIMUS_RETURN_IF_ERROR(watchdog.Tick());
    absl::SleepFor(absl::Milliseconds(10));
  }
}

// Ranks that wait outside a step.
ForkedRanks::Body Waiting(absl::Duration timeout) {
  return [timeout](SharedWorld& world, SharedState& state) -> absl::Status {
    HoldTerminationSignals();
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Watchdog> watchdog,
                             Watchdog::Create(world, timeout));
    watchdog->Follow("waits for the report", nullptr, nullptr);
    state.ready[world.rank()] = true;
    return TickForEver(*watchdog);
  };
}

TEST(WatchdogTest, ARankZeroThatIsStoppedOutsideAStepIsReported) {
  ForkedRanks ranks(3, 3, Waiting(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(0));
  std::vector<std::string> reports;
  for (int rank = 1; rank < 3; ++rank) {
    EXPECT_FALSE(ranks.ResultOf(rank).ok());
    if (!Text(ranks.ResultOf(rank)).empty()) reports.push_back(Text(ranks.ResultOf(rank)));
  }
  ASSERT_EQ(reports.size(), 1);
  EXPECT_THAT(reports[0], StartsWith("rank 0 is stopped (SIGSTOP), for 500ms"));
  EXPECT_THAT(reports[0], HasSubstr("\nrank 0 (node0): stopped (SIGSTOP); waits for the report\n"
                                    "ranks 1, 2 (node0): waits for the report"));
}

TEST(WatchdogTest, RankZeroReportsOneThatIsStoppedOutsideAStep) {
  ForkedRanks ranks(2, 2, Waiting(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ranks.ResultOf(0)));
  EXPECT_THAT(Text(ranks.ResultOf(0)), StartsWith("rank 1 is stopped (SIGSTOP), for 500ms"));
}

TEST(WatchdogTest, RankZeroReportsOneThatIsStoppedOutsideAStepOnAnotherNode) {
  ForkedRanks ranks(4, 2, Waiting(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(3));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ranks.ResultOf(0)));
  EXPECT_THAT(Text(ranks.ResultOf(0)), StartsWith("rank 3 is stopped (SIGSTOP), for 500ms"));
}

// Nobody of its node can see it.
TEST(WatchdogTest, ARankZeroThatIsStoppedAloneOnItsNodeIsMissed) {
  ForkedRanks ranks(2, 1, Waiting(absl::Milliseconds(500)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(0));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ranks.ResultOf(1)));
  EXPECT_THAT(Text(ranks.ResultOf(1)), StartsWith("rank 0 has not answered rank 1 for 2s"));
  EXPECT_THAT(Text(ranks.ResultOf(1)), HasSubstr("\nrank 0 (node0): no answer\n"
                                                 "rank 1 (node1): waits for the report"));
}

TEST(WatchdogTest, ARankThatGoesOnAgainHasNotBeenStoppedForLong) {
  ForkedRanks ranks(2, 2, Waiting(absl::Seconds(2)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ranks.Stop(0));
    absl::SleepFor(absl::Milliseconds(600));
    ranks.Signal(0, SIGCONT);
    absl::SleepFor(absl::Milliseconds(600));
  }
  EXPECT_EQ(ranks.state().codes[0], -1);
  EXPECT_EQ(ranks.state().codes[1], -1);
}

TEST(WatchdogTest, ATerminationSignalToOneRankIsToldByThatRank) {
  ForkedRanks ranks(3, 3, Following(absl::Hours(1)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(1, SIGTERM);
  EXPECT_TRUE(absl::IsCancelled(ranks.ResultOf(1)));
  EXPECT_THAT(Text(ranks.ResultOf(1)),
              StartsWith("rank 1 was asked to stop (SIGTERM); the ranks of this node are at:\n"
                         "rank 0 (node0): step 3: compute: operation 0\n"));
}

TEST(WatchdogTest, RankZeroTellsOfATerminationSignalToAllOfAnotherNode) {
  ForkedRanks ranks(4, 2, Following(absl::Hours(1)));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(2, SIGTERM);
  ranks.Signal(3, SIGTERM);
  EXPECT_TRUE(absl::IsCancelled(ranks.ResultOf(0)));
  EXPECT_THAT(Text(ranks.ResultOf(0)), HasSubstr("asked to stop (SIGTERM)"));
}

// A rank whose main thread never ticks; its guard prints, which here is what the test reads. `main`
// is what the main thread does.
ForkedRanks::Body Guarded(const std::function<void(Watchdog&)>& main) {
  return [main](SharedWorld& world, SharedState& state) -> absl::Status {
    const int rank = world.rank();
    HoldTerminationSignals();
    Guard guard([&state, rank](const absl::Status& error) {
      state.messages[rank].Write(std::string(error.message()));
      state.codes[rank] = static_cast<int>(error.code());
      _exit(0);
    });
    OPTIMUS_ASSIGN_OR_RETURN(const std::unique_ptr<Watchdog> watchdog,
                             Watchdog::Create(world, absl::Milliseconds(500)));
    watchdog->Follow(absl::StrCat("plans part ", rank), nullptr, nullptr);
    guard.SetDuty([&watchdog] { return watchdog->StandIn(); });
    state.ready[rank] = true;
    main(*watchdog);
    absl::SleepFor(absl::Hours(1));
    return absl::OkStatus();
  };
}
void DoesNotTick(Watchdog& /*watchdog*/) {}

TEST(WatchdogTest, ADeathIsReportedWhileNobodyTicks) {
  ForkedRanks ranks(3, 3, Guarded(DoesNotTick));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(2, SIGKILL);
  EXPECT_TRUE(absl::IsAborted(ranks.ResultOf(0)));
  EXPECT_EQ(Text(ranks.ResultOf(0)),
            "rank 2 (node0) is gone (killed or crashed); it was at plans part 2");
  EXPECT_EQ(Text(ranks.ResultOf(1)), "");
}

TEST(WatchdogTest, ATerminationSignalIsAnsweredWhileNobodyTicks) {
  ForkedRanks ranks(2, 2, Guarded(DoesNotTick));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ranks.Signal(0, SIGTERM);
  ranks.Signal(1, SIGTERM);
  EXPECT_TRUE(absl::IsCancelled(ranks.ResultOf(0)));
  EXPECT_THAT(Text(ranks.ResultOf(0)), StartsWith("asked to stop (SIGTERM)"));
  EXPECT_EQ(Text(ranks.ResultOf(1)), "");
}

TEST(WatchdogTest, AStoppedRankIsReportedWhileNobodyTicks) {
  ForkedRanks ranks(2, 2, Guarded(DoesNotTick));
  ASSERT_TRUE(ranks.WaitUntilReady());
  ASSERT_TRUE(ranks.Stop(1));
  EXPECT_THAT(Text(ranks.ResultOf(0)), StartsWith("rank 1 is stopped (SIGSTOP)"));
}

TEST(WatchdogTest, ARankZeroThatIsBusyIsNotMissedByOtherNodes) {
  ForkedRanks ranks(2, 1, Guarded(DoesNotTick));
  ASSERT_TRUE(ranks.WaitUntilReady());
  absl::SleepFor(absl::Seconds(4));
  EXPECT_EQ(ranks.state().codes[0], -1);
  EXPECT_EQ(ranks.state().codes[1], -1);
}

// As where an error leads through destructors that wait for a rank that is gone.
TEST(WatchdogTest, AReportThatNobodyPrintsIsPrinted) {
  ForkedRanks ranks(1, 1, Guarded([](Watchdog& watchdog) {
                      watchdog.Follow("step 1", nullptr, [] { return 0; });
                      EXPECT_FALSE(TickForEver(watchdog).ok());
                    }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ranks.ResultOf(0)));
  EXPECT_THAT(Text(ranks.ResultOf(0)), HasSubstr("\nrank 0 (node0): step 1"));
}

}  // namespace
}  // namespace optimus::executor
