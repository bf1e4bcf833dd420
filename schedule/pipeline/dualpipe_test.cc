// DualPipe and DualPipeV: the published bubbles, orders written out by hand, and that one is half
// of the other.

#include "schedule/pipeline/dualpipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/pipeline/dualpipe_v.h"
#include "schedule/pipeline/order_memory.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/validate_order.h"

namespace optimus::pipeline {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Times {
  int f = 1, data = 1, weight = 1;
  int together = 3;  // F&B
  int backward() const { return data + weight; }
};

OrderSpan SpanOf(const Order& order, const Times& t) {
  SlotTimes times = UniformTimes(order, Picoseconds(t.f), Picoseconds(t.data),
                                 Picoseconds(t.weight), Picoseconds(0));
  times.together.assign(order.stages,
                        std::vector<Picoseconds>(order.chunks, Picoseconds(t.together)));
  const auto span = EvaluateOrder(order, times);
  EXPECT_TRUE(span.ok()) << span.status();
  return span.ok() ? *span : OrderSpan{};
}

// By stage: the step less the stage's work, a pair that shares the stage counted once.
std::vector<std::int64_t> Bubbles(const Order& order, const Times& t) {
  const OrderSpan span = SpanOf(order, t);
  std::vector<std::int64_t> bubbles;
  for (std::size_t s = 0; s < span.slots.size(); ++s) {
    bubbles.push_back(span.span.value());
    for (std::size_t i = 0; i < span.slots[s].size(); ++i) {
      if (i > 0 && order.slots[s][i - 1].with_next) continue;
      bubbles.back() -= (span.slots[s][i].end - span.slots[s][i].start).value();
    }
  }
  return bubbles;
}

// Largest number of micro-batches that have gone forward and not wholly backward, both ways.
int MostInFlight(const std::vector<Slot>& slots) {
  int now = 0, most = 0;
  for (const Slot& slot : slots) {
    if (slot.kind == SlotKind::kForward) most = std::max(most, ++now);
    if (slot.kind == SlotKind::kBackward || slot.kind == SlotKind::kBackwardWeight) --now;
  }
  return most;
}

// The example of the report (Figure 5: 8 ranks, 20 micro-batches). Bubble by its formula
// (PP/2 - 1)(F&B + B - 3W), Table 2 of the report.
TEST(DualPipeTest, PublishedExample) {
  const auto order = DualPipe(8, 20);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->placement, Placement::kBidirectional);
  EXPECT_THAT(Bubbles(*order, {1, 1, 1, 3}), Each(6));
  // Pairs that take the time of the backward alone: stages at the ends share 9 or 10 pairs, the
  // middle ones 11.
  EXPECT_THAT(Bubbles(*order, {1, 1, 1, 2}), ElementsAre(1, 2, 3, 3, 3, 3, 2, 1));
}

constexpr Times kBalanced[] = {
    {1, 1, 1, 3}, {1, 1, 1, 2}, {10, 10, 7, 27}, {10, 10, 7, 22}, {8, 8, 5, 13}};

// `middle`: the stages where the two ways meet.
void ExpectBubble(const Order& order, const std::vector<int>& middle, const Times& t, int bubble) {
  const auto bubbles = Bubbles(order, t);
  for (const int s : middle) EXPECT_EQ(bubbles[s], bubble) << "stage " << s;
  EXPECT_EQ(*std::max_element(bubbles.begin(), bubbles.end()), bubble);
  if (t.together == t.f + t.backward()) {
    EXPECT_THAT(bubbles, Each(bubble));
  }
}

TEST(DualPipeTest, BubbleIsTheFormula) {
  for (int p = 2; p <= 16; p += 2) {
    for (const int m : {2 * p, 2 * p + 2, 3 * p, 4 * p + 6}) {
      const auto order = DualPipe(p, m);
      ASSERT_TRUE(order.ok()) << order.status();
      for (const Times& t : kBalanced) {
        SCOPED_TRACE(testing::Message() << p << " stages, " << m << " micro-batches, " << t.f << " "
                                        << t.weight << " " << t.together);
        ExpectBubble(*order, {p / 2 - 1, p / 2}, t,
                     (p / 2 - 1) * (t.together + t.backward() - 3 * t.weight));
      }
      const Times uneven{12, 10, 9, 31};
      ExpectBubble(*order, {p / 2 - 1, p / 2}, uneven, (p / 2 - 1) * (31 + 12 - 2 * 9));
    }
  }
}

TEST(DualPipeVTest, BubbleIsTheFormula) {
  for (int p = 1; p <= 9; ++p) {
    for (const int m : {2 * p, 2 * p + 1, 3 * p, 4 * p + 3}) {
      const auto order = DualPipeV(p, m);
      ASSERT_TRUE(order.ok()) << order.status();
      for (const Times& t : kBalanced) {
        SCOPED_TRACE(testing::Message() << p << " stages, " << m << " micro-batches, " << t.f << " "
                                        << t.weight << " " << t.together);
        ExpectBubble(*order, {p - 1}, t, (p - 1) * (t.together + t.backward() - 3 * t.weight));
      }
    }
  }
}

TEST(DualPipeTest, MicroBatchesInFlight) {
  for (int p = 2; p <= 16; p += 2) {
    const Order dual = *DualPipe(p, 2 * p + 2);
    for (const auto& slots : dual.slots) EXPECT_EQ(MostInFlight(slots), p + 1);
    EXPECT_THAT(*PeakActivations(dual), Each(p + 1));
    const Order half = *DualPipeV(p / 2, p + 1);
    for (const auto& slots : half.slots) EXPECT_EQ(MostInFlight(slots), p + 1);
  }
}

// F, B, I, W down; f, b, i, w up; "&" between two that share the stage.
std::string Written(const std::vector<Slot>& slots) {
  std::string text;
  for (const Slot& slot : slots) {
    text += (slot.chunk == 0 ? "FBIW" : "fbiw")[static_cast<int>(slot.kind)];
    text += std::to_string(slot.micro_batch) + (slot.with_next ? "&" : " ");
  }
  return text;
}

TEST(DualPipeTest, WrittenOut) {
  const Order order = *DualPipe(4, 8);
  EXPECT_EQ(Written(order.slots[0]), "F0 F1 F2 f4 i4 w4 f5 F3&b5 f6&B0 b6 f7&B1 b7 I2 W2 I3 W3 ");
  EXPECT_EQ(Written(order.slots[1]), "F0 f4 F1 f5 F2 b4 f6&B0 F3&b5 f7&B1 b6 B2 i7 I3 w7 W3 ");
}

// Stage s and its mirror image do the same, with the directions exchanged; and DualPipeV on half
// the stages runs the first half of the slots, each direction's micro-batches counted from 0.
TEST(DualPipeTest, TwoHalves) {
  for (int p = 2; p <= 12; p += 2) {
    const Order dual = *DualPipe(p, 3 * p - p % 4);
    const int each_way = dual.micro_batches / 2;
    Order mirrored = dual, down = dual;
    std::reverse(mirrored.slots.begin(), mirrored.slots.end());
    for (auto& slots : mirrored.slots) {
      for (Slot& slot : slots) {
        slot.micro_batch = (slot.micro_batch + each_way) % dual.micro_batches;
        slot.chunk = 1 - slot.chunk;
      }
    }
    EXPECT_EQ(mirrored.slots, dual.slots);
    down.slots.resize(p / 2);
    for (auto& slots : down.slots) {
      for (Slot& slot : slots) slot.micro_batch %= each_way;
    }
    EXPECT_EQ(DualPipeV(p / 2, each_way)->slots, down.slots);
  }
}

TEST(DualPipeTest, Refuses) {
  const auto refusal = [](const absl::StatusOr<Order>& order) {
    EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(order.status().message());
  };
  EXPECT_THAT(refusal(DualPipe(7, 20)), HasSubstr("pipeline stages: 7 is odd"));
  EXPECT_THAT(refusal(DualPipe(8, 21)), HasSubstr("micro-batches: 21 is odd"));
  EXPECT_THAT(refusal(DualPipe(8, 14)), HasSubstr("micro-batches: 14 is fewer than 16"));
  EXPECT_TRUE(DualPipe(8, 16).ok());
  EXPECT_THAT(refusal(DualPipe(0, 16)), HasSubstr("pipeline stages: 0"));
  EXPECT_THAT(refusal(DualPipe(2'000'000'000, 2'000'000'000)), HasSubstr("slots"));
  EXPECT_THAT(refusal(DualPipeV(4, 7)), HasSubstr("micro-batches: 7 is fewer than 8"));
  EXPECT_TRUE(DualPipeV(4, 8).ok());
  EXPECT_THAT(refusal(DualPipeV(4, -1)), HasSubstr("micro-batches: -1"));
}

}  // namespace
}  // namespace optimus::pipeline
