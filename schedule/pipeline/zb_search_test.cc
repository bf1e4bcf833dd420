// The parts of the search: list schedules, replay, local search; and the whole of it against every
// order there is.

#include "schedule/pipeline/zb_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "schedule/pipeline/wake_queue.h"
#include "schedule/pipeline/zb_h1.h"
#include "schedule/pipeline/zb_improve.h"
#include "schedule/pipeline/zb_list.h"
#include "schedule/pipeline/zb_refill.h"
#include "schedule/pipeline/zb_replay.h"
#include "schedule/pipeline/zb_testing.h"

namespace optimus::pipeline {
namespace {

// Weight gradients that need more than forwards leave.
ZbProblem WithMoreForWeights(std::mt19937& random, ZbProblem problem) {
  problem.shares.by_stage.reserve(problem.memory_limit.size());
  for (double& limit : problem.memory_limit) {
    problem.shares.by_stage.push_back(static_cast<double>(random() % 13) / 4);
    limit += AddedByData(problem.shares.by_stage.back());
  }
  return problem;
}

constexpr Picoseconds kLongest(std::numeric_limits<std::int64_t>::max());

ZbPolicy RandomPolicy(std::mt19937& random) {
  const auto bit = [&random] { return random() % 2 == 0; };
  return {static_cast<double>(random() % 3) / 2,
          static_cast<double>(random() % 5) / 4,
          bit(),
          bit(),
          bit(),
          bit(),
          bit()};
}

// Also under the least memory, where a careless order deadlocks, and with passes of no length.
TEST(ZbListTest, EveryPolicyGivesAnOrderThatRunsWithinMemory) {
  std::mt19937 random(1);
  for (int i = 0; i < 600; ++i) {
    const int stages = 1 + static_cast<int>(random() % 6);
    const int chunks = 1 + static_cast<int>(random() % 2);
    const int micro_batches = 1 + static_cast<int>(random() % (std::size_t{3} * stages));
    auto problem = RandomProblem(random, stages, chunks, micro_batches);
    if (i % 2 == 1) problem = WithMoreForWeights(random, problem);
    const auto order = ListSchedule(problem, MicroBatchPath(problem), RandomPolicy(random));
    EXPECT_GE(CheckedScore(problem, order).first, Picoseconds(0)) << i;
  }
}

// Messages that last longer than slots queue.
ZbProblem WithLongMessages(std::mt19937& random, ZbProblem problem) {
  if (random() % 2 == 0) problem.times.communication = Picoseconds(static_cast<int>(random() % 30));
  return problem;
}

// Its plain twin: a set of all wake-ups.
TEST(WakeQueueTest, EarliestFirstThenLowerStage) {
  std::mt19937 random(12);
  for (int stages = 1; stages <= 9; ++stages) {
    WakeQueue queue(stages);
    std::set<std::pair<Picoseconds, int>> twin;
    for (int i = 0; i < 500; ++i) {
      const int stage = static_cast<int>(random() % stages);
      const Picoseconds time(static_cast<int>(random() % 40));
      queue.Add(stage, time);
      twin.emplace(time, stage);
      Picoseconds now;
      int taken = 0;
      if (random() % 3 == 0) continue;
      ASSERT_EQ(queue.Take(now, taken), !twin.empty());
      ASSERT_EQ(std::make_pair(now, taken), *twin.begin());
      twin.erase(twin.begin());
      if (random() % 2 == 0) continue;
      const Picoseconds until(static_cast<int>(random() % 40));
      queue.SleepUntil(taken, until);
      for (auto it = twin.begin(); it != twin.end();) {
        it = it->second == taken && it->first < until ? twin.erase(it) : std::next(it);
      }
      twin.emplace(until, taken);
    }
    Picoseconds now;
    int taken = 0;
    for (const auto& expected : twin) {
      ASSERT_TRUE(queue.Take(now, taken));
      ASSERT_EQ(std::make_pair(now, taken), expected);
    }
    EXPECT_FALSE(queue.Take(now, taken));
  }
}

// Its plain twin: the replay of the order.
TEST(ZbListTest, ScoreIsThatOfTheOrderOrGivenUpAboveTheLimit) {
  std::mt19937 random(10);
  int given_up = 0;
  for (int i = 0; i < 400; ++i) {
    const int stages = 1 + static_cast<int>(random() % 6);
    const auto problem = WithLongMessages(
        random, RandomProblem(random, stages, 1 + static_cast<int>(random() % 2),
                              1 + static_cast<int>(random() % (std::size_t{3} * stages))));
    const MicroBatchPath path(problem);
    const ZbPolicy policy = RandomPolicy(random);
    ZbReplay replay(problem, path);
    ASSERT_TRUE(replay.Run(ListSchedule(problem, path, policy)));
    const Picoseconds first = replay.score().first;
    EXPECT_EQ(ListScore(problem, path, policy, first).score, replay.score()) << i;
    const Picoseconds most(first.value() / 2 + static_cast<std::int64_t>(random() % 100));
    const auto result = ListScore(problem, path, policy, most);
    EXPECT_EQ(result.score.has_value(), first <= most) << i;
    given_up += result.score.has_value() ? 0 : 1;
  }
  EXPECT_GT(given_up, 100);
}

TEST(ZbListTest, DelaysThatAreTheSameGiveTheSameOrder) {
  std::mt19937 random(11);
  int same = 0;
  int others = 0;
  for (int i = 0; i < 100; ++i) {
    const auto problem = RandomProblem(random, 1 + static_cast<int>(random() % 5),
                                       1 + static_cast<int>(random() % 2), 8);
    const MicroBatchPath path(problem);
    ZbPolicy policy = RandomPolicy(random);
    const Order order = ListSchedule(problem, path, policy);
    const SameDelays delays = ListScore(problem, path, policy, kLongest).same;
    for (std::size_t f = 0; f < kZbDelays.size(); ++f) {
      for (std::size_t w = 0; w < kZbDelays.size(); ++w) {
        if (((delays.forward >> f) & (delays.weight >> w) & 1U) == 0) {
          ++others;
          continue;
        }
        policy.forward_delay = kZbDelays[f];
        policy.weight_delay = kZbDelays[w];
        ASSERT_EQ(ListSchedule(problem, path, policy).slots, order.slots) << i;
        ++same;
      }
    }
  }
  EXPECT_GT(same, 500);
  EXPECT_GT(others, 500);
}

// Its plain twin: EvaluateOrder.
TEST(ZbReplayTest, TimesAreThoseOfEvaluateOrder) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const int stages = 1 + static_cast<int>(random() % 5);
    const auto problem =
        WithLongMessages(random, RandomProblem(random, stages, 1 + static_cast<int>(random() % 2),
                                               1 + static_cast<int>(random() % 8)));
    const MicroBatchPath path(problem);
    const auto order = ListSchedule(problem, path, RandomPolicy(random));
    ZbReplay replay(problem, path);
    // The second run starts from what the first left behind.
    ASSERT_TRUE(replay.Run(order) && replay.Run(order));
    const auto span = EvaluateOrder(order, problem.times);
    ASSERT_TRUE(span.ok());
    for (int s = 0; s < stages; ++s) {
      for (std::size_t slot = 0; slot < order.slots[s].size(); ++slot) {
        ASSERT_EQ(replay.start(s, slot), span->slots[s][slot].start);
        ASSERT_EQ(replay.end(s, slot), span->slots[s][slot].end);
      }
    }
    EXPECT_EQ(replay.score(), ScoreOf(span->first_start, span->last_end, problem.objective));
  }
}

TEST(ZbReplayTest, FindsADeadlock) {
  const auto problem = UniformProblem(2, 1, 2, 1, 1, 1, 0, 4);
  auto order = *ZbH1(2, 2);
  // Stage 1 wants micro-batch 1 first, stage 0 the gradient of micro-batch 0 before it sends that.
  order.slots[0] = {{SlotKind::kForward, 0, 0},        {SlotKind::kBackwardData, 0, 0},
                    {SlotKind::kBackwardWeight, 0, 0}, {SlotKind::kForward, 0, 1},
                    {SlotKind::kBackwardData, 0, 1},   {SlotKind::kBackwardWeight, 0, 1}};
  std::swap(order.slots[1][0], order.slots[1][2]);
  std::swap(order.slots[1][1], order.slots[1][3]);
  ASSERT_FALSE(EvaluateOrder(order, problem.times).ok());
  EXPECT_FALSE(ZbReplay(problem, MicroBatchPath(problem)).Run(order));
}

std::vector<Slot> WithoutWeights(const std::vector<Slot>& slots) {
  std::vector<Slot> rest;
  std::copy_if(slots.begin(), slots.end(), std::back_inserter(rest),
               [](const Slot& slot) { return slot.kind != SlotKind::kBackwardWeight; });
  return rest;
}

TEST(ZbRefillTest, KeepsForwardsAndDataGradientsAndFitsMemory) {
  std::mt19937 random(9);
  int better = 0;
  for (int i = 0; i < 300; ++i) {
    const int stages = 1 + static_cast<int>(random() % 5);
    auto problem = RandomProblem(random, stages, 1 + static_cast<int>(random() % 2),
                                 1 + static_cast<int>(random() % 12));
    if (i % 2 == 1) problem = WithMoreForWeights(random, problem);
    const MicroBatchPath path(problem);
    const auto order = ListSchedule(problem, path, RandomPolicy(random));
    const auto refilled =
        RefillWeights(problem, path, order, static_cast<double>(random() % 5) / 4);
    better += CheckedScore(problem, refilled) < CheckedScore(problem, order) ? 1 : 0;
    for (int s = 0; s < stages; ++s) {
      ASSERT_EQ(WithoutWeights(refilled.slots[s]), WithoutWeights(order.slots[s])) << i;
    }
  }
  EXPECT_GT(better, 30);
}

// By hand, every pass 2 long: stage 0 waits from 4 to 6 for its first data gradient, with no weight
// gradient to run, and from 8 to 10 for the second, into which one fits. Stage 1 never waits, so
// its weight gradients come last.
TEST(ZbRefillTest, FillsTheWaitByHand) {
  const auto problem = UniformProblem(2, 1, 2, 2, 2, 2, 0, 2);
  const auto order = RefillWeights(problem, MicroBatchPath(problem), *ZbH1(2, 2), /*delay=*/0);
  const auto weight = [](int m) { return Slot{SlotKind::kBackwardWeight, 0, m}; };
  EXPECT_EQ(order.slots[0][3], weight(0));
  EXPECT_EQ(order.slots[1][4], weight(0));
}

TEST(ZbImproveTest, NeverWorseAndWithinMemory) {
  std::mt19937 random(3);
  int better = 0;
  for (int i = 0; i < 200; ++i) {
    const auto problem =
        WithLongMessages(random, RandomProblem(random, 1 + static_cast<int>(random() % 4),
                                               1 + static_cast<int>(random() % 2), 4));
    const MicroBatchPath path(problem);
    const auto order = ListSchedule(problem, path, RandomPolicy(random));
    const auto improved = Improve(problem, path, order, 20'000);
    const auto before = CheckedScore(problem, order);
    const auto after = CheckedScore(problem, improved);
    EXPECT_LE(after, before);
    better += after < before ? 1 : 0;
  }
  EXPECT_GT(better, 40);
}

TEST(ZbImproveTest, NoBudgetLeavesTheOrder) {
  const auto problem = UniformProblem(2, 1, 4, 2, 3, 1, 0, 2);
  EXPECT_EQ(Improve(problem, MicroBatchPath(problem), *ZbH1(2, 4), 0).slots, ZbH1(2, 4)->slots);
}

// Every order of a stage within its memory, micro-batches in turn.
void AllOrders(const ZbProblem& problem, int stage, std::vector<Slot>& slots, const Held& held,
               int done[3], std::vector<std::vector<Slot>>& all) {
  if (done[2] == problem.micro_batches) all.push_back(slots);
  constexpr SlotKind kKinds[] = {SlotKind::kForward, SlotKind::kBackwardData,
                                 SlotKind::kBackwardWeight};
  for (int k = 0; k < 3; ++k) {
    Held then = held;
    then.Add(kKinds[k]);
    if (done[k] == (k == 0 ? problem.micro_batches : done[k - 1]) ||
        !Fits(then, problem.shares.Of(stage), problem.memory_limit[stage])) {
      continue;
    }
    slots.push_back({kKinds[k], 0, done[k]++});
    AllOrders(problem, stage, slots, then, done, all);
    slots.pop_back();
    --done[k];
  }
}

// The shortest of all combinations of such orders, by the objective alone.
Picoseconds Shortest(const ZbProblem& problem) {
  std::vector<std::vector<std::vector<Slot>>> all(problem.stages);
  std::size_t combinations = 1;
  for (int s = 0; s < problem.stages; ++s) {
    std::vector<Slot> slots;
    int done[3] = {};
    AllOrders(problem, s, slots, {}, done, all[s]);
    combinations *= all[s].size();
  }
  const MicroBatchPath path(problem);
  ZbReplay replay(problem, path);
  Order order{problem.stages, 1, problem.micro_batches, {}};
  order.slots.resize(problem.stages);
  Picoseconds best(std::int64_t{1} << 60);
  for (std::size_t i = 0; i < combinations; ++i) {
    std::size_t rest = i;
    for (int s = 0; s < problem.stages; ++s) {
      order.slots[s] = all[s][rest % all[s].size()];
      rest /= all[s].size();
    }
    if (replay.Run(order)) best = std::min(best, replay.score().first);
  }
  return best;
}

void ExpectShortest(int stages, int most_micro_batches, int rounds, unsigned seed) {
  std::mt19937 random(seed);
  for (int m = 1; m <= most_micro_batches; ++m) {
    for (int i = 0; i < rounds; ++i) {
      const auto problem = RandomProblem(random, stages, 1, m);
      const auto order = SearchZbOrder(problem, {});
      ASSERT_TRUE(order.ok()) << order.status();
      EXPECT_EQ(CheckedScore(problem, *order).first, Shortest(problem)) << m << ", round " << i;
    }
  }
}

TEST(ZbSearchTest, TwoStagesAgainstEveryOrder) { ExpectShortest(2, 4, 10, 4); }
// Where weight gradients need more than forwards leave.
TEST(ZbSearchTest, MoreForWeightsAgainstEveryOrder) {
  std::mt19937 random(14);
  for (int i = 0; i < 30; ++i) {
    const auto problem = WithMoreForWeights(random, RandomProblem(random, 2, 1, 1 + i % 4));
    const auto order = SearchZbOrder(problem, {});
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_EQ(CheckedScore(problem, *order).first, Shortest(problem)) << i;
  }
}

TEST(ZbSearchTest, ThreeStagesAgainstEveryOrder) { ExpectShortest(3, 3, 20, 5); }

}  // namespace
}  // namespace optimus::pipeline
