#include "schedule/pipeline/zb_v.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "schedule/pipeline/zb_testing.h"

namespace optimus::pipeline {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

ZbVOptions OptionsOf(const ZbProblem& problem) {
  return {problem.stages,       problem.micro_batches, problem.times,
          problem.memory_limit, problem.shares,        problem.objective};
}

std::string Picture(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& slot : slots) {
    const auto* letters = slot.chunk == 0 ? "F BW" : "f bw";
    text += letters[static_cast<int>(slot.kind)] + std::to_string(slot.micro_batch) + " ";
  }
  return text;
}

// The picture in the header comment.
TEST(ZbVTest, Picture) {
  EXPECT_EQ(Picture(ZbV(2, 4)->slots[0]),
            "F0 F1 F2 f0 b0 w0 f1 b1 w1 F3 B0 W0 f2 b2 w2 B1 W1 f3 b3 w3 B2 W2 B3 W3 ");
  EXPECT_EQ(Picture(ZbV(2, 4)->slots[1]),
            "F0 f0 F1 f1 b0 w0 F2 B0 W0 f2 b1 w1 F3 B1 W1 f3 b2 w2 B2 b3 B3 W2 w3 W3 ");
}

// Source: zb_v.h. The stage that starts last ends last: the whole takes p - 1 passes more.
TEST(ZbVTest, NoBubbleWithTheMemoryOfOneFOneB) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 2 * p - 1; m <= 4 * p; ++m) {
      const auto problem = UniformProblem(p, 2, m, 1, 1, 1, 0, 2 * p);
      const auto order = ZbV(p, m);
      ASSERT_TRUE(order.ok());
      EXPECT_EQ(order->placement, Placement::kV);
      EXPECT_THAT(*PeakActivations(*order), Each(2 * p)) << p << ", " << m;
      const auto score = CheckedScore(problem, *order);
      EXPECT_EQ(score.first.value(), 6 * m) << p << ", " << m;
      EXPECT_EQ(score.second.value(), 6 * m + p - 1) << p << ", " << m;
    }
  }
}

TEST(ZbVTest, Refusals) {
  EXPECT_THAT(ZbV(0, 4).status().message(), HasSubstr("pipeline stages: 0"));
  EXPECT_THAT(ZbV(4, 6).status().message(), HasSubstr("at least 2 * stages - 1 = 7"));
  EXPECT_TRUE(ZbV(4, 7).ok());
  auto options = OptionsOf(UniformProblem(3, 2, 5, 1, 1, 1, 0, 6));
  options.memory_limit[2] = 1.5;
  EXPECT_THAT(ZbVAuto(options).status().message(), HasSubstr("stage 2: 1.5 micro-batches of a"));
  options.memory_limit[2] = 2;
  EXPECT_TRUE(ZbVAuto(options).ok());
  options.times.forward[1].pop_back();
  EXPECT_THAT(ZbVAuto(options).status().message(), HasSubstr("3 stages x 2 chunks"));
}

TEST(ZbVAutoTest, NeverLongerThanTheTextbookWhereThatFits) {
  std::mt19937 random(8);
  for (int i = 0; i < 40; ++i) {
    const int p = 1 + static_cast<int>(random() % 4);
    const auto problem = RandomProblem(random, p, 2, 2 * p + static_cast<int>(random() % 4));
    const auto order = ZbVAuto(OptionsOf(problem));
    ASSERT_TRUE(order.ok()) << order.status();
    const auto score = CheckedScore(problem, *order);
    const auto textbook = *ZbV(p, problem.micro_batches);
    if (FitsMemory(problem, textbook)) {
      EXPECT_LE(score, CheckedScore(problem, textbook)) << i;
    }
  }
}

TEST(ZbVAutoTest, FewMicroBatchesAndLittleMemory) {
  for (int p = 1; p <= 5; ++p) {
    for (const int m : {1, 2, p}) {
      for (const double limit : {2.0, 3.0, 2.0 * p}) {
        if (limit < 2) continue;
        const auto problem = UniformProblem(p, 2, m, 2, 3, 1, 1, limit);
        const auto order = ZbVAuto(OptionsOf(problem));
        ASSERT_TRUE(order.ok()) << order.status();
        // No less than the work of a stage, nor than the way of one micro-batch and its last
        // weight gradient.
        const auto score = CheckedScore(problem, *order);
        EXPECT_GE(score.first.value(), 12 * m);
        EXPECT_GE(score.second.value(), 2 * p * 5 + 4 * (p - 1) + 1);
      }
    }
  }
}

// More memory than the textbook's, times that it is not made for: the search finds better.
TEST(ZbVAutoTest, UsesMoreMemory) {
  const auto problem = UniformProblem(4, 2, 16, 10, 18, 10, 0, 16);
  const auto score = CheckedScore(problem, *ZbVAuto(OptionsOf(problem)));
  EXPECT_LT(score.first, CheckedScore(problem, *ZbV(4, 16)).first);
  EXPECT_EQ(score.first.value(), 16 * 2 * 38);
}

}  // namespace
}  // namespace optimus::pipeline
