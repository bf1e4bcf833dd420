#include "executor/watch/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <string>

#include "absl/time/clock.h"
#include "executor/watch/termination.h"

namespace optimus::executor {
namespace {

bool Comes(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

struct Ended {
  std::atomic<int> times{0};
  absl::Status error;
  Guard::End Noting() {
    return [this](const absl::Status& status) {
      if (times == 0) error = status;
      ++times;
    };
  }
};

class GuardTest : public ::testing::Test {
 protected:
  void SetUp() override { HoldTerminationSignals(); }
};

TEST_F(GuardTest, AnErrorOfItsDutyEndsTheProcess) {
  Ended ended;
  Guard guard(ended.Noting());
  guard.SetDuty([] { return absl::AbortedError("rank 1 is gone"); });
  ASSERT_TRUE(Comes([&] { return ended.times > 0; }));
  guard.SetDuty(nullptr);
  EXPECT_EQ(ended.error, absl::AbortedError("rank 1 is gone"));
}

TEST_F(GuardTest, AnEarlierDutyIsNotCalledAnyMore) {
  Ended ended;
  Guard guard(ended.Noting());
  std::atomic<int> first{0}, second{0};
  guard.SetDuty([&] {
    ++first;
    return absl::OkStatus();
  });
  ASSERT_TRUE(Comes([&] { return first > 0; }));
  guard.SetDuty([&] {
    ++second;
    return absl::OkStatus();
  });
  const int before = first;
  ASSERT_TRUE(Comes([&] { return second > 1; }));
  EXPECT_EQ(first, before);
  EXPECT_EQ(ended.times, 0);
}

TEST_F(GuardTest, ASignalIsForWhoeverTakesIt) {
  Ended ended;
  Guard guard(ended.Noting());
  EXPECT_FALSE(TakeTerminationSignal());
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(Comes(TakeTerminationSignal));
  EXPECT_FALSE(TakeTerminationSignal());
  EXPECT_EQ(ended.times, 0);
}

TEST_F(GuardTest, WhereAllIsSaidTheNextSignalEndsItWithoutAWord) {
  Ended ended;
  Guard guard(ended.Noting());
  std::atomic<int> looks{0};
  guard.SetDuty([&looks] {
    ++looks;
    return absl::OkStatus();
  });
  TellThatAllIsSaid(getpid());
  ASSERT_TRUE(Comes([&] {  // no duty any more
    const int before = looks;
    absl::SleepFor(absl::Milliseconds(500));
    return looks == before;
  }));
  kill(getpid(), SIGTERM);
  ASSERT_TRUE(Comes([&] { return ended.times > 0; }));
  EXPECT_FALSE(ended.error.ok());
  EXPECT_EQ(ended.error.message(), "");
}

TEST_F(GuardTest, WhereAllIsSaidItEndsAlsoWithoutASignal) {
  Ended ended;
  const Guard guard(ended.Noting());
  TellThatAllIsSaid(getpid());
  ASSERT_TRUE(Comes([&] { return ended.times > 0; }));
  EXPECT_EQ(ended.error.message(), "");
}

}  // namespace
}  // namespace optimus::executor
