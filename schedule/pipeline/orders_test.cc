// GPipe and 1F1B: orders written out by hand, and spans by their closed forms.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "schedule/pipeline/gpipe.h"
#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/validate_order.h"

namespace optimus::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Slot F(int micro_batch) { return {SlotKind::kForward, 0, micro_batch}; }
Slot B(int micro_batch) { return {SlotKind::kBackward, 0, micro_batch}; }

// F = 1, B = 2, no communication.
std::int64_t SpanOf(const Order& order) {
  const auto times =
      UniformTimes(order, Picoseconds(1), Picoseconds(1), Picoseconds(1), Picoseconds(0));
  const auto span = EvaluateOrder(order, times);
  EXPECT_TRUE(span.ok()) << span.status();
  return span.ok() ? span->span.value() : -1;
}

TEST(GPipeTest, AllForwardsThenAllBackwards) {
  const auto order = GPipe(2, 3);
  ASSERT_TRUE(order.ok()) << order.status();
  for (const auto& stage : order->slots) {
    EXPECT_THAT(stage, ElementsAre(F(0), F(1), F(2), B(0), B(1), B(2)));
  }
}

TEST(OneForwardOneBackwardTest, WrittenOutForThreeStages) {
  const auto order = OneForwardOneBackward(3, 4);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(order->slots,
              ElementsAre(ElementsAre(F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)),
                          ElementsAre(F(0), F(1), B(0), F(2), B(1), F(3), B(2), B(3)),
                          ElementsAre(F(0), B(0), F(1), B(1), F(2), B(2), F(3), B(3))));
}

TEST(OneForwardOneBackwardTest, FewerMicroBatchesThanStages) {
  EXPECT_EQ(SpanOf(*OneForwardOneBackward(4, 1)), 12);
  EXPECT_EQ(SpanOf(*OneForwardOneBackward(4, 2)), 15);
}

// Both take (m + p - 1)(F + B); 1F1B only keeps fewer activations.
TEST(OrdersTest, SpanIsTheClosedForm) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      for (const auto& order : {GPipe(p, m), OneForwardOneBackward(p, m)}) {
        ASSERT_TRUE(order.ok()) << order.status();
        EXPECT_TRUE(ValidateOrder(*order).ok()) << ValidateOrder(*order);
        EXPECT_EQ(SpanOf(*order), (m + p - 1) * 3) << "p " << p << ", m " << m;
      }
    }
  }
}

// The textbook bubble: (p - 1) / (m + p - 1) of each stage's time is idle; 1/3 for p = m = 2.
TEST(OrdersTest, BubbleOfTwoStagesTwoMicroBatchesIsOneThird) {
  const std::int64_t span = SpanOf(*OneForwardOneBackward(2, 2));
  EXPECT_EQ((span - 6) * 3, span);
}

TEST(OrdersTest, RefusesCounts) {
  for (const auto& order : {GPipe(0, 1), OneForwardOneBackward(0, 1)}) {
    EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(order.status().message(), HasSubstr("pipeline stages: 0"));
  }
  for (const auto& order : {GPipe(2, -3), OneForwardOneBackward(2, -3)}) {
    EXPECT_THAT(order.status().message(), HasSubstr("micro-batches: -3"));
  }
  // Refused before any memory is asked for.
  EXPECT_THAT(GPipe(1'000'000, 1'000'000).status().message(), HasSubstr("slots"));
}

}  // namespace
}  // namespace optimus::pipeline
