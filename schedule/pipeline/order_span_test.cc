#include "schedule/pipeline/order_span.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "schedule/pipeline/interleaved.h"
#include "schedule/pipeline/one_f_one_b.h"

namespace optimus::pipeline {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

SlotTimes Uniform(const Order& order, int f, int d, int w, int c) {
  return UniformTimes(order, Picoseconds(f), Picoseconds(d), Picoseconds(w), Picoseconds(c));
}

std::vector<std::pair<int, int>> Intervals(const OrderSpan& span, int stage) {
  std::vector<std::pair<int, int>> out;
  for (const SlotInterval& slot : span.slots[stage]) {
    out.emplace_back(slot.start.value(), slot.end.value());
  }
  return out;
}

std::string Refusal(const Order& order, const SlotTimes& times) {
  const auto span = EvaluateOrder(order, times);
  EXPECT_EQ(span.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(span.status().message());
}

// Two stages, two micro-batches, F = 10, B = 20, communication 3; worked out by hand.
TEST(OrderSpanTest, WorkedOutByHand) {
  const Order order = *OneForwardOneBackward(2, 2);
  const auto span = EvaluateOrder(order, Uniform(order, 10, 15, 5, 3));
  ASSERT_TRUE(span.ok()) << span.status();
  using P = std::vector<std::pair<int, int>>;
  // Stage 1: F0 at 10 + 3, B0, F1 (arrived at 23), B1.
  EXPECT_EQ(Intervals(*span, 1), (P{{13, 23}, {23, 43}, {43, 53}, {53, 73}}));
  // Stage 0: F0, F1, B0 at 43 + 3, B1 at 73 + 3.
  EXPECT_EQ(Intervals(*span, 0), (P{{0, 10}, {10, 20}, {46, 66}, {76, 96}}));
  EXPECT_EQ(span->span, Picoseconds(96));
  EXPECT_EQ(span->first_start[1], Picoseconds(13));
  EXPECT_EQ(span->last_end[1], Picoseconds(73));
}

// F = 1, B = 3, messages of 5: the second forward's message leaves when the first has arrived,
// at 6.
TEST(OrderSpanTest, MessagesOfOneDirectionQueue) {
  const Order order = *OneForwardOneBackward(2, 2);
  const auto span = EvaluateOrder(order, Uniform(order, 1, 2, 1, 5));
  ASSERT_TRUE(span.ok()) << span.status();
  using P = std::vector<std::pair<int, int>>;
  EXPECT_EQ(Intervals(*span, 1), (P{{6, 7}, {7, 10}, {11, 12}, {12, 15}}));
  EXPECT_EQ(Intervals(*span, 0), (P{{0, 1}, {1, 2}, {15, 18}, {20, 23}}));
}

// A gradient leaves when the data part is done; the weight part may wait.
TEST(OrderSpanTest, BackwardInTwoParts) {
  using K = SlotKind;
  const std::vector<Slot> slots{
      {K::kForward, 0, 0}, {K::kBackwardData, 0, 0}, {K::kBackwardWeight, 0, 0}};
  const Order order{2, 1, 1, {slots, slots}};
  const auto span = EvaluateOrder(order, Uniform(order, 1, 2, 4, 1));
  ASSERT_TRUE(span.ok()) << span.status();
  using P = std::vector<std::pair<int, int>>;
  EXPECT_EQ(Intervals(*span, 1), (P{{2, 3}, {3, 5}, {5, 9}}));
  EXPECT_EQ(Intervals(*span, 0), (P{{0, 1}, {6, 8}, {8, 12}}));
}

// Each stage and chunk has its own times. One micro-batch goes down and up the virtual stages.
TEST(OrderSpanTest, TimesByStageAndChunk) {
  const std::vector<Slot> slots{{SlotKind::kForward, 0, 0},
                                {SlotKind::kForward, 1, 0},
                                {SlotKind::kBackward, 1, 0},
                                {SlotKind::kBackward, 0, 0}};
  const Order order{2, 2, 1, {slots, slots}};
  SlotTimes times = Uniform(order, 0, 0, 0, 1000);
  int power = 1;
  for (auto* table : {&times.forward, &times.backward_data, &times.backward_weight}) {
    for (auto& row : *table) {
      for (auto& time : row) {
        time = Picoseconds(std::exchange(power, power * 2) % 997);
      }
    }
  }
  // All twelve times once each: 1 + 2 + ... + 512 + (1024 mod 997) + (2048 mod 997); six edges.
  EXPECT_EQ(EvaluateOrder(order, times)->span, Picoseconds(1023 + 27 + 54 + 6 * 1000));
}

TEST(OrderSpanTest, OneStageHasNoCommunication) {
  const Order order = *Interleaved({1, 3, 4, 0, WarmUp::kMegatron});
  EXPECT_EQ(EvaluateOrder(order, Uniform(order, 1, 1, 1, 100))->span,
            Picoseconds(std::int64_t{4} * 3 * 3));
}

// The last stage of a V turns: what it hands to itself takes no time on the way.
TEST(OrderSpanTest, VHandsToItselfAtTheTurn) {
  using K = SlotKind;
  const std::vector<Slot> slots{
      {K::kForward, 0, 0}, {K::kForward, 1, 0}, {K::kBackward, 1, 0}, {K::kBackward, 0, 0}};
  const Order order{2, 2, 1, {slots, slots}, Placement::kV};
  const auto span = EvaluateOrder(order, Uniform(order, 10, 15, 5, 3));
  ASSERT_TRUE(span.ok()) << span.status();
  using P = std::vector<std::pair<int, int>>;
  // Stage 0: F of virtual stage 0, then 3 (arrived at 33 + 3), its backward, B of 0 (at 109 + 3).
  EXPECT_EQ(Intervals(*span, 0), (P{{0, 10}, {36, 46}, {46, 66}, {112, 132}}));
  // Stage 1: virtual stages 1 and 2, one after the other in both directions.
  EXPECT_EQ(Intervals(*span, 1), (P{{13, 23}, {23, 33}, {69, 89}, {89, 109}}));
}

// Two models, one each way: micro-batch 0 enters at stage 0, micro-batch 1 at stage 1.
TEST(OrderSpanTest, BothDirections) {
  using K = SlotKind;
  const Order order{
      2,
      2,
      2,
      {{{K::kForward, 0, 0}, {K::kForward, 1, 1}, {K::kBackward, 1, 1}, {K::kBackward, 0, 0}},
       {{K::kForward, 1, 1}, {K::kForward, 0, 0}, {K::kBackward, 0, 0}, {K::kBackward, 1, 1}}},
      Placement::kBidirectional};
  const auto span = EvaluateOrder(order, Uniform(order, 10, 15, 5, 3));
  ASSERT_TRUE(span.ok()) << span.status();
  using P = std::vector<std::pair<int, int>>;
  for (const int stage : {0, 1}) {
    EXPECT_EQ(Intervals(*span, stage), (P{{0, 10}, {13, 23}, {23, 43}, {46, 66}}));
  }
}

// F0 F1 {F2 with B0} B1 B2 on the last of two stages.
Order WithOnePair() {
  using K = SlotKind;
  Order order{2,
              1,
              3,
              {{{K::kForward, 0, 0},
                {K::kForward, 0, 1},
                {K::kForward, 0, 2},
                {K::kBackward, 0, 0},
                {K::kBackward, 0, 1},
                {K::kBackward, 0, 2}},
               {{K::kForward, 0, 0},
                {K::kForward, 0, 1},
                {K::kForward, 0, 2, true},
                {K::kBackward, 0, 0},
                {K::kBackward, 0, 1},
                {K::kBackward, 0, 2}}}};
  return order;
}

TEST(OrderSpanTest, PairStartsAndEndsTogether) {
  const Order order = WithOnePair();
  SlotTimes times = Uniform(order, 10, 15, 5, 3);
  times.together = {{{Picoseconds(1000)}}, {{Picoseconds(25)}}};  // by the stage of the pair
  using P = std::vector<std::pair<int, int>>;
  const auto span = EvaluateOrder(order, times);
  ASSERT_TRUE(span.ok()) << span.status();
  // The pair starts when F2 has arrived, at 30 + 3, and B0 leaves at its end.
  EXPECT_EQ(Intervals(*span, 1), (P{{13, 23}, {23, 33}, {33, 58}, {33, 58}, {58, 78}, {78, 98}}));
  EXPECT_EQ(Intervals(*span, 0)[3], std::pair(61, 81));
  // Without a time of their own, as long as one after the other.
  times.together.clear();
  EXPECT_EQ(Intervals(*EvaluateOrder(order, times), 1)[3], std::pair(33, 63));
  // The pair of DualPipe's kind waits for the gradient: stage 0 pairs F2 with B0, at 43 + 3.
  Order waits = *OneForwardOneBackward(2, 3);
  ASSERT_EQ(waits.slots[0][2].kind, SlotKind::kBackward);
  waits.slots[0] = {{SlotKind::kForward, 0, 0},       {SlotKind::kForward, 0, 1},
                    {SlotKind::kForward, 0, 2, true}, {SlotKind::kBackward, 0, 0},
                    {SlotKind::kBackward, 0, 1},      {SlotKind::kBackward, 0, 2}};
  EXPECT_EQ(Intervals(*EvaluateOrder(waits, times), 0)[2], std::pair(46, 76));
}

// A backward run whole may be shorter than its two parts.
TEST(OrderSpanTest, WholeBackwardOfItsOwnTime) {
  const Order order = *OneForwardOneBackward(1, 2);
  SlotTimes times = Uniform(order, 10, 15, 5, 3);
  EXPECT_EQ(EvaluateOrder(order, times)->span, Picoseconds(60));
  times.backward = {{{Picoseconds(18)}}};
  EXPECT_EQ(EvaluateOrder(order, times)->span, Picoseconds(56));
}

// Whether all slots of an order of one chunk can run, tried again and again.
bool Completes(const Order& order) {
  std::vector<std::size_t> next(order.slots.size(), 0);
  std::set<std::tuple<SlotKind, std::size_t, int>> done;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < next.size(); ++s) {
      if (next[s] == order.slots[s].size()) continue;
      const Slot& slot = order.slots[s][next[s]];
      const bool forward = slot.kind == SlotKind::kForward;
      const bool end_of_model = s == (forward ? 0 : next.size() - 1);
      const std::size_t from = forward ? s - 1 : s + 1;
      if (!end_of_model && done.count({slot.kind, from, slot.micro_batch}) == 0) continue;
      done.emplace(slot.kind, s, slot.micro_batch);
      ++next[s];
      moved = true;
    }
  }
  return done.size() == next.size() * static_cast<std::size_t>(order.micro_batches) * 2;
}

// Of a pair, the one that waits is named.
TEST(OrderSpanTest, NamesADeadlockOfAPair) {
  Order order = WithOnePair();
  // Stage 0 pairs F1 with B0, which stage 1 makes only beside F2, which comes after F1.
  order.slots[0] = {{SlotKind::kForward, 0, 0},  {SlotKind::kForward, 0, 1, true},
                    {SlotKind::kBackward, 0, 0}, {SlotKind::kForward, 0, 2},
                    {SlotKind::kBackward, 0, 1}, {SlotKind::kBackward, 0, 2}};
  EXPECT_THAT(Refusal(order, Uniform(order, 1, 1, 1, 0)),
              HasSubstr("stage 0, slot 2 (backward of chunk 0, micro-batch 0) waits for the "
                        "backward of chunk 0, micro-batch 0 of stage 1, which"));
  const auto circle = FindDeadlock(order);
  ASSERT_EQ(circle.size(), 2U);
  EXPECT_EQ(circle[0].index, 2U);
  EXPECT_EQ(circle[0].needs_stage, 1U);
  EXPECT_EQ(order.slots[1][circle[0].needs_index], (Slot{SlotKind::kBackward, 0, 0}));
  EXPECT_EQ(circle[1].stage, 1U);
  EXPECT_EQ(circle[1].needs_stage, 0U);
  // In the pair that waits.
  EXPECT_EQ(circle[1].needs_index, 1U);
  EXPECT_TRUE(FindDeadlock(WithOnePair()).empty());
}

// Invariant: scaling all durations by c scales all times by c.
TEST(OrderSpanTest, Scales) {
  const Order order = *Interleaved({4, 3, 8, 0, WarmUp::kMegatron});
  const auto one = EvaluateOrder(order, Uniform(order, 7, 9, 4, 2));
  const auto many = EvaluateOrder(order, Uniform(order, 7 * 13, 9 * 13, 4 * 13, 2 * 13));
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(many->span, one->span * 13);
  for (std::size_t s = 0; s < one->slots.size(); ++s) {
    for (std::size_t i = 0; i < one->slots[s].size(); ++i) {
      EXPECT_EQ(many->slots[s][i].start, one->slots[s][i].start * 13);
      EXPECT_EQ(many->slots[s][i].end, one->slots[s][i].end * 13);
    }
  }
}

// Each stage alone is in order, but stage 0 wants the gradient of 1 first, stage 1 makes 0's first
// and waits for a forward that stage 0 runs later.
TEST(OrderSpanTest, NamesADeadlock) {
  Order order = *OneForwardOneBackward(2, 2);
  std::swap(order.slots[0][1], order.slots[0][2]);  // F0 B0 F1 B1
  std::swap(order.slots[1][1], order.slots[1][2]);  // F0 F1 B0 B1
  EXPECT_THAT(Refusal(order, Uniform(order, 1, 1, 1, 0)),
              Eq("order deadlocks: stage 0, slot 1 (backward of chunk 0, micro-batch 0) waits for "
                 "the backward of chunk 0, micro-batch 0 of stage 1, which cannot run before the "
                 "next of these; stage 1, slot 1 (forward of chunk 0, micro-batch 1) waits for the "
                 "forward of chunk 0, micro-batch 1 of stage 0, which cannot run before the first "
                 "of these"));
}

// Stage 0 waits for a circle that it is not part of.
TEST(OrderSpanTest, TheCircleIsThatOfTheStagesInIt) {
  Order order = *OneForwardOneBackward(3, 2);
  const Slot f0{SlotKind::kForward, 0, 0}, f1{SlotKind::kForward, 0, 1};
  const Slot b0{SlotKind::kBackward, 0, 0}, b1{SlotKind::kBackward, 0, 1};
  order.slots = {{f0, b0, f1, b1}, {f0, b0, f1, b1}, {f0, f1, b0, b1}};
  const auto circle = FindDeadlock(order);
  ASSERT_EQ(circle.size(), 2U);
  EXPECT_EQ(circle[0].stage, 1U);
  EXPECT_EQ(circle[1].stage, 2U);
}

// The turn of a V: a stage that waits for itself.
TEST(OrderSpanTest, ACircleOfOne) {
  Order order{1, 2, 1, {}, Placement::kV};
  order.slots = {{{SlotKind::kForward, 1, 0},
                  {SlotKind::kForward, 0, 0},
                  {SlotKind::kBackward, 1, 0},
                  {SlotKind::kBackward, 0, 0}}};
  const auto circle = FindDeadlock(order);
  ASSERT_EQ(circle.size(), 1U);
  EXPECT_EQ(circle[0].index, 0U);
  EXPECT_EQ(circle[0].needs_index, 1U);
}

// On random orders: it deadlocks if and only if a walk says so that takes one slot at a time, and
// every member of the circle stands in the way of the one before it.
TEST(OrderSpanTest, EveryMemberStandsInTheWay) {
  std::mt19937 random(21);
  int deadlocks = 0;
  for (int i = 0; i < 500; ++i) {
    const int stages = 2 + static_cast<int>(random() % 4);
    Order order = *OneForwardOneBackward(stages, 4);
    for (auto& slots : order.slots) {
      for (int swap = 0; swap < 2; ++swap) {
        const std::size_t at = random() % (slots.size() - 1);
        if (slots[at].micro_batch != slots[at + 1].micro_batch) std::swap(slots[at], slots[at + 1]);
      }
    }
    const auto circle = FindDeadlock(order);
    EXPECT_EQ(circle.empty(), Completes(order)) << i;
    deadlocks += circle.empty() ? 0 : 1;
    for (std::size_t k = 0; k < circle.size(); ++k) {
      const Wait& next = circle[(k + 1) % circle.size()];
      EXPECT_EQ(circle[k].needs_stage, next.stage);
      EXPECT_GE(circle[k].needs_index, next.index);
      const Slot& slot = order.slots[circle[k].stage][circle[k].index];
      const Slot& needed = order.slots[circle[k].needs_stage][circle[k].needs_index];
      EXPECT_EQ(slot.kind, needed.kind);
      EXPECT_EQ(slot.micro_batch, needed.micro_batch);
      EXPECT_EQ(circle[k].needs_stage + (slot.kind == SlotKind::kForward ? 1 : -1),
                circle[k].stage);
    }
  }
  EXPECT_GT(deadlocks, 50);
  EXPECT_LT(deadlocks, 450);
}

TEST(OrderSpanTest, RefusesOrdersAndTimes) {
  const Order order = *OneForwardOneBackward(2, 2);
  Order short_order = order;
  short_order.slots[1].pop_back();
  EXPECT_THAT(Refusal(short_order, Uniform(order, 1, 1, 1, 0)), HasSubstr("stage 1: no backward"));
  EXPECT_THAT(Refusal(order, Uniform(order, -1, 1, 1, 0)), HasSubstr("forward: negative time"));
  EXPECT_THAT(Refusal(order, Uniform(order, 1, 1, 1, -1)), HasSubstr("communication: negative"));
  SlotTimes times = Uniform(order, 1, 1, 1, 0);
  times.together = times.forward;
  times.together[0].clear();
  EXPECT_THAT(Refusal(order, times), HasSubstr("together: needs 2 stages x 1 chunks"));
  times.together.clear();
  times.backward = {{Picoseconds(-2)}, {Picoseconds(1)}};
  EXPECT_THAT(Refusal(order, times), HasSubstr("backward: negative time -2"));
  times.backward.clear();
  times.backward_weight[1].clear();
  EXPECT_THAT(Refusal(order, times), HasSubstr("backward_weight: needs 2 stages x 1 chunks"));
}

}  // namespace
}  // namespace optimus::pipeline
