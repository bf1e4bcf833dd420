#include "schedule/pipeline/validate_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "schedule/pipeline/interleaved.h"

namespace optimus::pipeline {
namespace {

using ::testing::HasSubstr;

Order Good() { return *Interleaved({2, 2, 4, 0, WarmUp::kMegatron}); }

std::string Refusal(const Order& order) {
  const absl::Status status = ValidateOrder(order);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ValidateOrderTest, AcceptsAWholeStep) { EXPECT_TRUE(ValidateOrder(Good()).ok()); }

TEST(ValidateOrderTest, AcceptsBackwardInTwoParts) {
  Order order{1, 1, 1, {{{SlotKind::kForward, 0, 0}, {SlotKind::kBackwardData, 0, 0}}}};
  EXPECT_THAT(Refusal(order), HasSubstr("stage 0: no backward (weight) of chunk 0, micro-batch 0"));
  order.slots[0].push_back({SlotKind::kBackwardWeight, 0, 0});
  EXPECT_TRUE(ValidateOrder(order).ok()) << ValidateOrder(order);
  order.slots[0].push_back({SlotKind::kBackward, 0, 0});
  EXPECT_THAT(Refusal(order), HasSubstr("slot 3 (backward of chunk 0, micro-batch 0): runs twice"));
  std::swap(order.slots[0][1], order.slots[0][2]);
  EXPECT_THAT(Refusal(order), HasSubstr("slot 1 (backward (weight) of chunk 0, micro-batch 0): "
                                        "runs before what it needs"));
}

TEST(ValidateOrderTest, NamesWhatIsMissing) {
  Order order = Good();
  order.slots[1].pop_back();
  EXPECT_THAT(Refusal(order), HasSubstr("stage 1: no backward of chunk 0, micro-batch 3"));
  order.slots[1].clear();
  EXPECT_THAT(Refusal(order), HasSubstr("stage 1: no forward of chunk 0, micro-batch 0"));
  order.slots.pop_back();
  EXPECT_THAT(Refusal(order), HasSubstr("slots of 1 stages, but 2 stages"));
}

TEST(ValidateOrderTest, NamesWhatRunsTwiceOrTooEarly) {
  Order order = Good();
  order.slots[0].push_back(order.slots[0].front());
  EXPECT_THAT(Refusal(order),
              HasSubstr("stage 0, slot 16 (forward of chunk 0, micro-batch 0): runs twice"));
  order = Good();
  order.slots[0].insert(order.slots[0].begin(), {SlotKind::kBackward, 1, 2});
  EXPECT_THAT(Refusal(order), HasSubstr("stage 0, slot 0 (backward of chunk 1, micro-batch 2): "
                                        "runs before what it needs"));
}

TEST(ValidateOrderTest, RefusesWhatDoesNotExist) {
  for (const Slot& slot : {Slot{SlotKind::kForward, 2, 0}, Slot{SlotKind::kForward, -1, 0},
                           Slot{SlotKind::kForward, 0, 4}, Slot{SlotKind::kForward, 0, -1}}) {
    Order order = Good();
    order.slots[0].push_back(slot);
    EXPECT_THAT(Refusal(order), HasSubstr("no such chunk or micro-batch"));
  }
  Order order = Good();
  order.slots[0].push_back({static_cast<SlotKind>(17), 0, 0});
  EXPECT_THAT(Refusal(order), HasSubstr("slot 16"));
  order = Good();
  order.chunks = 0;
  EXPECT_THAT(Refusal(order), HasSubstr("model chunks: 0"));
}

TEST(ValidateOrderTest, PairIsAForwardAndAWholeBackward) {
  using K = SlotKind;
  const Order good{1,
                   1,
                   2,
                   {{{K::kForward, 0, 0},
                     {K::kForward, 0, 1, true},
                     {K::kBackward, 0, 0},
                     {K::kBackward, 0, 1}}}};
  EXPECT_TRUE(ValidateOrder(good).ok()) << ValidateOrder(good);
  Order order = good;
  order.slots[0][0].with_next = true;  // before a forward
  EXPECT_THAT(Refusal(order), HasSubstr("slot 0 (forward of chunk 0, micro-batch 0): shares"));
  order = good;
  order.slots[0][3].with_next = true;  // a backward, and the last
  EXPECT_THAT(Refusal(order), HasSubstr("slot 3 (backward of chunk 0, micro-batch 1): shares"));
  order = good;
  order.slots[0][2].with_next = true;
  EXPECT_THAT(Refusal(order), HasSubstr("slot 1 (forward of chunk 0, micro-batch 1): shares"));
  order = good;
  order.slots[0][2].kind = K::kBackwardData;  // before a backward in two parts
  order.slots[0].push_back({K::kBackwardWeight, 0, 0});
  EXPECT_THAT(Refusal(order), HasSubstr("that is no whole backward"));
  order.slots[0][1].with_next = false;
  EXPECT_TRUE(ValidateOrder(order).ok()) << ValidateOrder(order);
  order = good;
  std::swap(order.slots[0][2], order.slots[0][3]);
  EXPECT_THAT(Refusal(order), HasSubstr("beside its own backward"));
}

TEST(ValidateOrderTest, VIsWholeOnEveryStage) {
  using K = SlotKind;
  const std::vector<Slot> slots{
      {K::kForward, 0, 0}, {K::kForward, 1, 0}, {K::kBackward, 1, 0}, {K::kBackward, 0, 0}};
  Order order{2, 2, 1, {slots, slots}, Placement::kV};
  EXPECT_TRUE(ValidateOrder(order).ok()) << ValidateOrder(order);
  order.slots[1].pop_back();
  EXPECT_THAT(Refusal(order), HasSubstr("stage 1: no backward of chunk 0, micro-batch 0"));
}

TEST(ValidateOrderTest, EachDirectionHasItsMicroBatches) {
  using K = SlotKind;
  const std::vector<Slot> slots{
      {K::kForward, 0, 0}, {K::kForward, 1, 1}, {K::kBackward, 1, 1}, {K::kBackward, 0, 0}};
  const Order good{2, 2, 2, {slots, slots}, Placement::kBidirectional};
  EXPECT_TRUE(ValidateOrder(good).ok()) << ValidateOrder(good);
  Order order = good;
  order.slots[1][1].micro_batch = 0;
  EXPECT_THAT(Refusal(order), HasSubstr("stage 1, slot 1 (forward of chunk 1, micro-batch 0): this "
                                        "micro-batch passes the model in the other direction"));
  order = good;
  order.slots[0].pop_back();
  EXPECT_THAT(Refusal(order), HasSubstr("stage 0: no backward of chunk 0, micro-batch 0"));
  order = good;
  order.micro_batches = 3;
  EXPECT_THAT(Refusal(order), HasSubstr("even number of micro-batches"));
  order = good;
  order.chunks = 3;
  EXPECT_THAT(Refusal(order), HasSubstr("2 chunks"));
}

}  // namespace
}  // namespace optimus::pipeline
