#include "tools/sweep/pool/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing_folder.h"
#include "base/testing_sanitizer.h"

namespace optimus::sweep {
namespace {

using ::testing::HasSubstr;

// Jobs 0 to n - 1.
Pool Numbers(std::int64_t n, std::map<std::int64_t, JobOutcome>& outcomes) {
  Pool pool;
  pool.next = [n, next = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
    if (next == n) return std::nullopt;
    return next++;
  };
  pool.work = [](std::int64_t job) { return absl::StrCat("job ", job); };
  pool.done = [&outcomes](JobOutcome outcome) {
    outcomes.insert({outcome.job, std::move(outcome)});
    return absl::OkStatus();
  };
  return pool;
}

TEST(PoolTest, AsManyWorkersAsThisProcessHasCores) {
  EXPECT_EQ(WorkersFor(3), 3);
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(WorkersFor(0), CPU_COUNT(&all));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(WorkersFor(0), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(PoolTest, RunsEveryJobOnce) {
  for (const int workers : {1, 2, 7}) {
    std::map<std::int64_t, JobOutcome> outcomes;
    Pool pool = Numbers(25, outcomes);
    pool.workers = workers;
    ASSERT_TRUE(RunPool(pool).ok());
    ASSERT_EQ(outcomes.size(), 25);
    for (const auto& [job, outcome] : outcomes) {
      EXPECT_EQ(outcome.result.value(), absl::StrCat("job ", job));
      EXPECT_GT(outcome.peak_memory_mib, 0);
    }
  }
}

// A search decides by what it has; a sweep has its jobs from the beginning.
TEST(PoolTest, OnlyIndependentJobsStartBeforeResultsAreTakenCareOf) {
  for (const bool independent : {false, true}) {
    std::int64_t asked = 0;
    std::vector<std::int64_t> asked_at_done;
    Pool pool;
    pool.independent = independent;
    pool.next = [&]() -> std::optional<std::int64_t> {
      if (asked == 3) return std::nullopt;
      return asked++;
    };
    pool.work = [](std::int64_t /*job*/) { return std::string("x"); };
    pool.done = [&](const JobOutcome& /*outcome*/) {
      asked_at_done.push_back(asked);
      return absl::OkStatus();
    };
    ASSERT_TRUE(RunPool(pool).ok());
    EXPECT_EQ(asked_at_done, independent ? (std::vector<std::int64_t>{2, 3, 3})
                                         : (std::vector<std::int64_t>{1, 2, 3}));
  }
}

TEST(PoolTest, AJobThatFailsOrDiesIsAnOutcome) {
  std::map<std::int64_t, JobOutcome> outcomes;
  Pool pool = Numbers(4, outcomes);
  pool.workers = 2;
  pool.work = [](std::int64_t job) -> absl::StatusOr<std::string> {
    if (job == 1) return absl::InvalidArgumentError("no");
    if (job == 2) raise(SIGKILL);
    return std::string("x");
  };
  ASSERT_TRUE(RunPool(pool).ok());
  ASSERT_EQ(outcomes.size(), 4);
  EXPECT_EQ(outcomes.at(0).result.value(), "x");
  EXPECT_EQ(outcomes.at(1).result.status(), absl::InvalidArgumentError("no"));
  EXPECT_EQ(outcomes.at(2).result.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(outcomes.at(2).result.status().message()), HasSubstr("signal 9"));
  EXPECT_EQ(outcomes.at(3).result.value(), "x");
}

TEST(PoolTest, AJobThatDiesOnceIsStartedOnceMore) {
  const TestingFolder folder;
  const std::string marker = (folder.path() / "died").string();
  std::map<std::int64_t, JobOutcome> outcomes;
  Pool pool = Numbers(3, outcomes);
  pool.work = [&marker](std::int64_t job) {
    if (job == 1 && access(marker.c_str(), F_OK) != 0) {
      std::ofstream(marker) << "x";
      raise(SIGKILL);
    }
    return std::string("x");
  };
  ASSERT_TRUE(RunPool(pool).ok());
  ASSERT_EQ(outcomes.size(), 3);
  for (const auto& [job, outcome] : outcomes) EXPECT_TRUE(outcome.result.ok()) << job;
}

TEST(PoolTest, AJobThatTakesTooLongIsStopped) {
  std::map<std::int64_t, JobOutcome> outcomes;
  Pool pool = Numbers(2, outcomes);
  pool.limits.wall_s = 0.3;
  pool.work = [](std::int64_t job) {
    if (job == 0) std::this_thread::sleep_for(std::chrono::hours(1));
    return std::string("x");
  };
  ASSERT_TRUE(RunPool(pool).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(outcomes.at(0).result.status()));
  EXPECT_TRUE(outcomes.at(1).result.ok());
}

TEST(PoolTest, AJobThatNeedsTooMuchMemoryIsAnOutcome) {
  std::map<std::int64_t, JobOutcome> outcomes;
  Pool pool = Numbers(2, outcomes);
  pool.limits.memory_bytes = std::int64_t{1} << 31;
  pool.work = [](std::int64_t job) {
    return std::string(job == 0 ? std::size_t{1} << 32 : 1, 'x');
  };
#if OPTIMUS_SANITIZED_MEMORY
  GTEST_SKIP() << "the sanitizer reserves more address space than any limit";
#endif
  ASSERT_TRUE(RunPool(pool).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(outcomes.at(0).result.status()));
  EXPECT_TRUE(outcomes.at(1).result.ok());
}

TEST(PoolTest, StopKillsWhatRuns) {
  std::map<std::int64_t, JobOutcome> outcomes;
  Pool pool = Numbers(2, outcomes);
  pool.work = [](std::int64_t /*job*/) {
    std::this_thread::sleep_for(std::chrono::hours(1));
    return std::string("x");
  };
  int asked = 0;
  pool.stop = [&] { return ++asked > 2; };
  EXPECT_TRUE(absl::IsCancelled(RunPool(pool)));
  EXPECT_TRUE(outcomes.empty());
}

TEST(PoolTest, AnErrorOfDoneStopsEverything) {
  std::map<std::int64_t, JobOutcome> outcomes;
  Pool pool = Numbers(100, outcomes);
  pool.done = [](const JobOutcome& outcome) {
    return outcome.job == 3 ? absl::UnavailableError("full") : absl::OkStatus();
  };
  EXPECT_EQ(RunPool(pool), absl::UnavailableError("full"));
}

// A large answer does not fit into the pipe at once.
TEST(PoolTest, LargeAnswersComeWhole) {
  std::map<std::int64_t, JobOutcome> outcomes;
  Pool pool = Numbers(3, outcomes);
  pool.workers = 3;
  pool.work = [](std::int64_t job) {
    return std::string(std::size_t{5'000'000}, static_cast<char>('a' + job));
  };
  ASSERT_TRUE(RunPool(pool).ok());
  for (const auto& [job, outcome] : outcomes) {
    EXPECT_EQ(outcome.result.value(), std::string(5'000'000, static_cast<char>('a' + job)));
  }
}

}  // namespace
}  // namespace optimus::sweep
