// ZB-H1 and ZB-H2: memory, closed forms, pictures, refusals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/order_memory.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/validate_order.h"
#include "schedule/pipeline/zb_h1.h"
#include "schedule/pipeline/zb_h2.h"
#include "schedule/pipeline/zero_bubble_testing.h"

namespace optimus::pipeline {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;

std::int64_t StageSpan(const Order& order, int f, int b, int w) {
  const auto span = EvaluateOrder(
      order, UniformTimes(order, Picoseconds(f), Picoseconds(b), Picoseconds(w), Picoseconds(0)));
  EXPECT_TRUE(span.ok()) << span.status();
  return span.ok() ? LargestStageSpan(*span).value() : -1;
}

std::string Picture(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& slot : slots) {
    text += slot.kind == SlotKind::kForward        ? 'F'
            : slot.kind == SlotKind::kBackwardData ? 'B'
                                                   : 'W';
    text += std::to_string(slot.micro_batch) + " ";
  }
  return text;
}

// The pictures in the header comments.
TEST(ZbHandcraftedTest, Pictures) {
  EXPECT_EQ(Picture(ZbH1(4, 6)->slots[1]),
            "F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 B4 W3 B5 W4 W5 ");
  EXPECT_EQ(Picture(ZbH1(4, 6)->slots[3]),
            "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 W3 W4 W5 ");
  EXPECT_EQ(Picture(ZbH2(3, 6)->slots[0]),
            "F0 F1 F2 F3 F4 B0 W0 F5 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5 ");
  EXPECT_EQ(Picture(ZbH2(3, 6)->slots[1]),
            "F0 F1 F2 B0 F3 B1 F4 B2 W0 F5 B3 W1 B4 W2 B5 W3 W4 W5 ");
}

TEST(ZbHandcraftedTest, H1HoldsWhatOneFOneBHoldsAtMost) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p + 2; ++m) {
      const auto order = ZbH1(p, m);
      ASSERT_TRUE(order.ok() && ValidateOrder(*order).ok());
      EXPECT_THAT(*PeakActivations(*order), Each(Le(std::min(p, m)))) << p << ", " << m;
      EXPECT_DOUBLE_EQ((*PeakActivations(*order))[0],
                       (*PeakActivations(*OneForwardOneBackward(p, m)))[0]);
    }
  }
}

// Derived: stage 0 waits (p - 1) B for its first gradient; from then on its rhythm is F + B + W. In
// the warm-up of the last stage a pair of F and B lasts W less than that rhythm, which stage 0
// waits for later: (p - 1)(F - W) more. Holds where W <= F and m >= p, as the paper's
// (p - 1)(T_F + T_B - T_W) does.
TEST(ZbHandcraftedTest, H1BubbleIsTheClosedForm) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = p; m <= 3 * p + 2; ++m) {
      for (const auto& [f, b, w] : {std::array{1, 1, 1}, {5, 6, 2}, {7, 3, 7}, {3, 9, 1}}) {
        EXPECT_EQ(StageSpan(*ZbH1(p, m), f, b, w), m * (f + b + w) + (p - 1) * (f + b - w))
            << p << ", " << m;
      }
    }
  }
}

// 2 p - 1 forwards of stage 0 last until the first gradient where F >= B, and the weight gradients
// that stage p - 1 kept last until the others are done where 2 W >= F + B.
TEST(ZbHandcraftedTest, H2HasNoBubbleBetweenAStagesStartAndEnd) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 2 * p - 1; m <= 5 * p; ++m) {
      const auto order = ZbH2(p, m);
      ASSERT_TRUE(order.ok() && ValidateOrder(*order).ok());
      EXPECT_THAT(*PeakActivations(*order), Each(2 * p - 1)) << p << ", " << m;
      for (const auto& [f, b, w] : {std::array{1, 1, 1}, {4, 2, 3}, {5, 5, 8}}) {
        EXPECT_EQ(StageSpan(*order, f, b, w), m * (f + b + w)) << p << ", " << m;
      }
    }
  }
}

TEST(ZbHandcraftedTest, H2NeedsBothConditions) {
  EXPECT_GT(StageSpan(*ZbH2(4, 12), 4, 5, 5), 12 * 14);
  EXPECT_GT(StageSpan(*ZbH2(4, 12), 4, 4, 3), 12 * 11);
}

TEST(ZbHandcraftedTest, Refusals) {
  EXPECT_THAT(ZbH1(0, 4).status().message(), HasSubstr("pipeline stages: 0"));
  EXPECT_THAT(ZbH2(4, 0).status().message(), HasSubstr("micro-batches: 0"));
  EXPECT_THAT(ZbH2(4, 6).status().message(), HasSubstr("at least 2 * stages - 1 = 7"));
  EXPECT_TRUE(ZbH2(4, 7).ok());
  // No sum overflows on the way to the refusal.
  EXPECT_THAT(ZbH2(2'000'000'000, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace optimus::pipeline
