#include "schedule/pipeline/interleaved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "schedule/pipeline/one_f_one_b.h"
#include "schedule/pipeline/order_builder.h"
#include "schedule/pipeline/order_span.h"
#include "schedule/pipeline/validate_order.h"

namespace optimus::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr WarmUp kBoth[] = {WarmUp::kMegatron, WarmUp::kDeferred};

absl::StatusOr<OrderSpan> Evaluate(const Order& order, int f = 1, int b = 2) {
  return EvaluateOrder(
      order, UniformTimes(order, Picoseconds(f), Picoseconds(b), Picoseconds(0), Picoseconds(0)));
}

std::int64_t SpanOf(const InterleavedOptions& options, int f = 1, int b = 2) {
  const auto order = Interleaved(options);
  EXPECT_TRUE(order.ok()) << order.status();
  if (!order.ok()) {
    return -1;
  }
  EXPECT_TRUE(ValidateOrder(*order).ok()) << ValidateOrder(*order);
  const auto span = Evaluate(*order, f, b);
  EXPECT_TRUE(span.ok()) << span.status();
  return span.ok() ? span->span.value() : -1;
}

std::string Refusal(const InterleavedOptions& options) {
  const auto order = Interleaved(options);
  EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(order.status().message());
}

std::vector<Slot> OfKind(const std::vector<Slot>& slots, SlotKind kind) {
  std::vector<Slot> found;
  for (const Slot& slot : slots) {
    if (slot.kind == kind) {
      found.push_back(slot);
    }
  }
  return found;
}

std::vector<std::pair<int, int>> ChunkAndMicroBatch(const std::vector<Slot>& slots) {
  std::vector<std::pair<int, int>> pairs;
  pairs.reserve(slots.size());
  for (const Slot& slot : slots) {
    pairs.emplace_back(slot.chunk, slot.micro_batch);
  }
  return pairs;
}

// The example in the comment on get_schedule_table() of Megatron-LM's schedules.py: PP 2, 5
// micro-batches, 2 chunks, groups of 3.
TEST(InterleavedTest, MegatronsScheduleTable) {
  const auto order = Interleaved({2, 2, 5, 3, WarmUp::kMegatron});
  ASSERT_TRUE(order.ok()) << order.status();
  using P = std::pair<int, int>;
  for (const auto& stage : order->slots) {
    EXPECT_THAT(ChunkAndMicroBatch(OfKind(stage, SlotKind::kForward)),
                ElementsAre(P{0, 0}, P{0, 1}, P{0, 2}, P{1, 0}, P{1, 1}, P{1, 2}, P{0, 3}, P{0, 4},
                            P{1, 3}, P{1, 4}));
    EXPECT_THAT(ChunkAndMicroBatch(OfKind(stage, SlotKind::kBackward)),
                ElementsAre(P{1, 0}, P{1, 1}, P{1, 2}, P{0, 0}, P{0, 1}, P{0, 2}, P{1, 3}, P{1, 4},
                            P{0, 3}, P{0, 4}));
  }
}

int ForwardsBeforeFirstBackward(const std::vector<Slot>& slots) {
  int count = 0;
  while (slots[count].kind == SlotKind::kForward) {
    ++count;
  }
  return count;
}

// One forward more than the warm-up: that of the first forward-backward pair.
TEST(InterleavedTest, WarmUpForwards) {
  const auto megatron = Interleaved({4, 2, 8, 0, WarmUp::kMegatron});
  const auto deferred = Interleaved({4, 2, 8, 0, WarmUp::kDeferred});
  ASSERT_TRUE(megatron.ok() && deferred.ok());
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(ForwardsBeforeFirstBackward(megatron->slots[s]), (3 - s) * 2 + 4 + 1);
    EXPECT_EQ(ForwardsBeforeFirstBackward(deferred->slots[s]), (3 - s) + 4 + 1);
  }
  // More warm-up than forwards: all of them, no more.
  const auto small = Interleaved({4, 2, 4, 0, WarmUp::kMegatron});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(ForwardsBeforeFirstBackward(small->slots[0]), 8);
}

TEST(InterleavedTest, PublishedSpans) {
  for (const WarmUp warm_up : kBoth) {
    EXPECT_EQ(SpanOf({4, 2, 8, 0, warm_up}), 57);
    EXPECT_EQ(SpanOf({2, 2, 4, 0, warm_up}), 27);
    EXPECT_EQ(SpanOf({4, 2, 6, 6, warm_up}), 45);
    EXPECT_EQ(SpanOf({4, 2, 10, 5, warm_up}), 69);
    EXPECT_EQ(SpanOf({4, 2, 10, 6, warm_up}), 69);
  }
}

// T = N V (f + b) + (PP - 1)(f + b): uniform stages, no communication; also for every group size
// and short last group that is accepted.
TEST(InterleavedTest, SpanIsTheClosedForm) {
  int accepted = 0;
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int n = p; n <= 3 * p + 2; ++n) {
        for (int group = p; group <= n; ++group) {
          for (const WarmUp warm_up : kBoth) {
            if (!Interleaved({p, v, n, group, warm_up}).ok()) {
              continue;
            }
            ++accepted;
            for (const auto& [f, b] : {std::pair(1, 2), std::pair(3, 4), std::pair(5, 2)}) {
              EXPECT_EQ(SpanOf({p, v, n, group, warm_up}, f, b), (n * v + p - 1) * (f + b))
                  << p << " " << v << " " << n << " " << group;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 500);
}

struct FirstChunkOfStageZero {
  std::vector<std::int64_t> forward_starts, backward_ends;
};

FirstChunkOfStageZero Figure12(WarmUp warm_up) {
  const auto order = Interleaved({4, 2, 8, 0, warm_up});
  const auto span = Evaluate(*order);
  FirstChunkOfStageZero found;
  for (std::size_t i = 0; i < order->slots[0].size(); ++i) {
    const Slot& slot = order->slots[0][i];
    if (slot.chunk != 0) {
      continue;
    }
    if (slot.kind == SlotKind::kForward) {
      found.forward_starts.push_back(span->slots[0][i].start.value());
    } else {
      found.backward_ends.push_back(span->slots[0][i].end.value());
    }
  }
  return found;
}

// Figure 12 of the Optimus paper (arXiv 2408.03505): the F_i of the later micro-batches move back,
// the B_i of those micro-batches (where stage 0 ends the backward of its first chunk) do not move.
TEST(InterleavedTest, Figure12) {
  const auto megatron = Figure12(WarmUp::kMegatron);
  EXPECT_THAT(megatron.forward_starts, ElementsAre(0, 1, 2, 3, 8, 9, 10, 16));
  EXPECT_THAT(megatron.backward_ends, ElementsAre(29, 32, 34, 37, 51, 53, 55, 57));
  const auto deferred = Figure12(WarmUp::kDeferred);
  EXPECT_THAT(deferred.forward_starts, ElementsAre(0, 1, 2, 3, 16, 19, 22, 25));
  EXPECT_THAT(deferred.backward_ends, ElementsAre(28, 31, 34, 37, 51, 53, 55, 57));
}

// As few as keep the pipeline as short: on every stage one forward fewer makes it longer or stuck.
TEST(InterleavedTest, DeferredWarmUpIsTheLeast) {
  for (const auto& [p, v, n] : {std::tuple(4, 2, 8), std::tuple(3, 3, 9), std::tuple(2, 4, 6)}) {
    const auto order = Interleaved({p, v, n, 0, WarmUp::kDeferred});
    ASSERT_TRUE(order.ok());
    const Picoseconds span = Evaluate(*order)->span;
    for (int s = 0; s < p; ++s) {
      Order fewer = *order;
      fewer.slots[s] = WarmUpThenAlternate(OfKind(order->slots[s], SlotKind::kForward),
                                           OfKind(order->slots[s], SlotKind::kBackward),
                                           ForwardsBeforeFirstBackward(order->slots[s]) - 2);
      const auto fewer_span = Evaluate(fewer);
      EXPECT_TRUE(!fewer_span.ok() || fewer_span->span > span) << "stage " << s;
    }
  }
}

// With transfers, running ahead pays: that is what Megatron-LM's longer warm-up is for.
TEST(InterleavedTest, DeferredWarmUpCostsTimeOnceTransfersDo) {
  const auto span = [](WarmUp warm_up) {
    const auto order = Interleaved({4, 2, 8, 0, warm_up});
    return EvaluateOrder(*order, UniformTimes(*order, Picoseconds(10), Picoseconds(20),
                                              Picoseconds(0), Picoseconds(1)))
        ->span;
  };
  EXPECT_GT(span(WarmUp::kDeferred), span(WarmUp::kMegatron));
}

TEST(InterleavedTest, OneChunkIsPlain1F1B) {
  for (const WarmUp warm_up : kBoth) {
    const auto order = Interleaved({4, 1, 3, 0, warm_up});
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_EQ(order->slots, OneForwardOneBackward(4, 3)->slots);
    EXPECT_EQ(order->chunks, 1);
  }
}

TEST(InterleavedTest, RefusesWhatMegatronRefuses) {
  EXPECT_THAT(Refusal({4, 2, 10, 4}), HasSubstr("10 micro-batches in groups of 4 leave a last "
                                                "group of 2, which must be 0 or at least the 4"));
  EXPECT_THAT(Refusal({4, 2, 10, 0}), HasSubstr("allowed groups: 5, 6, 10"));
  EXPECT_THAT(Refusal({4, 2, 8, 3}), HasSubstr("3 is outside the allowed range [4, 8]"));
  EXPECT_THAT(Refusal({4, 2, 8, 9}), HasSubstr("9 is outside the allowed range [4, 8]"));
  EXPECT_THAT(Refusal({4, 2, 3, 0}), HasSubstr("at least one micro-batch per pipeline stage"));
  EXPECT_THAT(Refusal({4, 2, 8, -1}), HasSubstr("negative"));
  EXPECT_THAT(Refusal({4, 0, 8, 0}), HasSubstr("model chunks: 0"));
  EXPECT_THAT(Refusal({4, 2, 8, 3}), Not(HasSubstr("\n")));
}

// The groups that the message offers are exactly those that are accepted.
TEST(InterleavedTest, OfferedGroupsAreAccepted) {
  std::string accepted;
  for (int group = 1; group <= 10; ++group) {
    if (Interleaved({4, 2, 10, group}).ok()) {
      accepted += (accepted.empty() ? "" : ", ") + std::to_string(group);
    }
  }
  EXPECT_EQ(accepted, "5, 6, 10");
}

}  // namespace
}  // namespace optimus::pipeline
