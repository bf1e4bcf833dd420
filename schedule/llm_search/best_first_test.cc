#include "schedule/llm_search/best_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <utility>

#include "gmock/gmock.h"

namespace optimus::llm_search {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Picoseconds Ps(std::int64_t value) { return Picoseconds(value); }

// A search as it could be: every candidate has a step, or none, not below its bound.
struct Case {
  std::vector<Bounded> bounded;
  std::vector<std::optional<Picoseconds>> steps;  // by number
};

Case AnyCase(std::mt19937& random) {
  Case any;
  const int count = std::uniform_int_distribution<int>(1, 20)(random);
  for (int i = 0; i < count; ++i) {
    const std::int64_t bound = std::uniform_int_distribution<int>(0, 12)(random);
    const std::int64_t more = std::uniform_int_distribution<int>(0, 6)(random);
    any.bounded.push_back({i, Ps(bound)});
    any.steps.emplace_back();
    if (std::uniform_int_distribution<int>(0, 4)(random) > 0) any.steps.back() = Ps(bound + more);
  }
  return any;
}

// Up to `workers` at a time, which end in any order.
BestFirst::Outcome Search(const Case& any, int workers, std::mt19937& random) {
  BestFirst search(any.bounded, std::nullopt);
  std::vector<std::int64_t> running;
  for (;;) {
    while (static_cast<int>(running.size()) < workers) {
      const auto next = search.Next();
      if (!next) break;
      running.push_back(*next);
    }
    if (running.empty()) return search.Finish();
    std::shuffle(running.begin(), running.end(), random);
    search.Done(running.back(), any.steps[static_cast<std::size_t>(running.back())]);
    running.pop_back();
  }
}

TEST(BestFirst, FindsWhatTryingAllFindsWhoeverEndsFirst) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const Case any = AnyCase(random);
    std::optional<std::pair<Picoseconds, std::int64_t>> best;
    for (std::size_t n = 0; n < any.steps.size(); ++n) {
      if (!any.steps[n]) continue;
      const std::pair<Picoseconds, std::int64_t> found{*any.steps[n], n};
      if (!best || found < *best) best = found;
    }
    const BestFirst::Outcome alone = Search(any, 1, random);
    ASSERT_EQ(alone.evaluated.empty(), !best.has_value());
    if (best) {
      ASSERT_EQ(alone.evaluated.front(), best->second);
    }
    EXPECT_THAT(alone.open, IsEmpty());
    EXPECT_EQ(
        static_cast<std::size_t>(alone.pruned) + alone.evaluated.size() + alone.without_step.size(),
        any.steps.size());
    const BestFirst::Outcome many = Search(any, 5, random);
    EXPECT_EQ(many.evaluated, alone.evaluated);
    EXPECT_EQ(many.without_step, alone.without_step);
    EXPECT_EQ(many.pruned, alone.pruned);
  }
}

TEST(BestFirst, PrunesAndStopsAtTheBound) {
  BestFirst search({{0, Ps(30)}, {1, Ps(10)}, {2, Ps(20)}, {3, Ps(10)}}, std::nullopt);
  EXPECT_EQ(search.Next(), 1);
  search.Done(1, Ps(20));
  EXPECT_EQ(search.Next(), 3);
  EXPECT_EQ(search.Next(), 2);  // may still be as good
  EXPECT_EQ(search.Next(), std::nullopt);
  search.Done(2, Ps(20));
  search.Done(3, std::nullopt);
  const BestFirst::Outcome outcome = search.Finish();
  EXPECT_THAT(outcome.evaluated, ElementsAre(1, 2));
  EXPECT_THAT(outcome.without_step, ElementsAre(3));
  EXPECT_EQ(outcome.pruned, 1);
}

TEST(BestFirst, SaysWhatIsLeftOpen) {
  BestFirst search({{0, Ps(30)}, {1, Ps(10)}, {2, Ps(20)}}, Ps(25));
  EXPECT_EQ(search.Next(), 1);
  const BestFirst::Outcome outcome = search.Finish();  // the time was over
  ASSERT_EQ(outcome.open.size(), 2U);
  EXPECT_EQ(outcome.open[0].candidate, 1);
  EXPECT_EQ(outcome.open[1].candidate, 2);
  EXPECT_EQ(outcome.pruned, 1);
  EXPECT_THAT(outcome.evaluated, IsEmpty());
}

}  // namespace
}  // namespace optimus::llm_search
