#include "executor/backends/pinning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

namespace optimus::executor {
namespace {

using testing::ElementsAre;

std::vector<int> Choices(const std::vector<int>& allowed, const std::map<int, int>& cores,
                         int ranks) {
  std::vector<int> chosen;
  chosen.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) chosen.push_back(ChooseCpu(allowed, cores, rank));
  return chosen;
}

TEST(ChooseCpuTest, OneCoreARankRoundAndRound) {
  EXPECT_THAT(Choices({0, 1, 5}, {{0, 0}, {1, 1}, {5, 5}}, 5), ElementsAre(0, 1, 5, 0, 1));
}

TEST(ChooseCpuTest, FirstThreadsOfAllCoresFirst) {
  // Neighbours share a core; and the numbering where the second threads follow all first ones.
  EXPECT_THAT(Choices({0, 1, 2, 3}, {{0, 0}, {1, 0}, {2, 2}, {3, 2}}, 4), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(Choices({0, 1, 2, 3}, {{0, 0}, {1, 1}, {2, 0}, {3, 1}}, 4), ElementsAre(0, 1, 2, 3));
}

TEST(ChooseCpuTest, KeepsTheCoreThatTheLauncherGave) {
  EXPECT_THAT(Choices({3}, {{3, 3}}, 4), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(Choices({3, 67}, {{3, 3}, {67, 3}}, 2), ElementsAre(3, 3));
  EXPECT_EQ(ChooseCpu({}, {}, 0), -1);
}

TEST(HasOwnCpuTest, CountsThoseThatAreAllowed) {
  EXPECT_TRUE(HasOwnCpu({0, 1}, 2));
  EXPECT_FALSE(HasOwnCpu({0, 1}, 3));
  EXPECT_TRUE(HasOwnCpu({5}, 1));
  EXPECT_FALSE(HasOwnCpu({5}, 1'000'000));
  EXPECT_FALSE(HasOwnCpu({}, 1));
}

// Of this process: what sched_setaffinity has set.
TEST(AllowedCpusTest, AreThoseOfTheProcess) {
  const std::vector<int> before = AllowedCpus();
  ASSERT_FALSE(before.empty());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(before.back(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_THAT(AllowedCpus(), ElementsAre(before.back()));
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const int cpu : before) CPU_SET(cpu, &all);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  const std::map<int, int> cores = CoresOf(before);
  ASSERT_EQ(cores.size(), before.size());
  for (const auto& [cpu, core] : cores) EXPECT_LE(core, cpu);
}

}  // namespace
}  // namespace optimus::executor
