#include "schedule/bubble/slots.h"

#include <gtest/gtest.h>

#include <utility>

#include "schedule/bubble/testing_random.h"

namespace optimus::bubble {
namespace {

Slots Make(std::initializer_list<std::pair<std::int64_t, std::int64_t>> pairs) {
  Slots slots;
  for (const auto& [start, end] : pairs) slots.push_back({Picoseconds(start), Picoseconds(end)});
  return slots;
}

// Which of the first 64 picoseconds are in a slot.
std::uint64_t Bits(const Slots& slots) {
  std::uint64_t bits = 0;
  for (const Interval& slot : slots) {
    for (std::int64_t t = slot.start.value(); t < slot.end.value(); ++t) bits |= 1ULL << t;
  }
  return bits;
}

Slots RandomSlots(testing::Random& random) {
  Slots slots;
  for (std::int64_t time = random.Between(0, 8); time < 60;) {
    const std::int64_t end = std::min<std::int64_t>(time + random.Between(1, 9), 64);
    slots.push_back({Picoseconds(time), Picoseconds(end)});
    time = end + random.Between(1, 6);
  }
  return slots;
}

bool WellFormed(const Slots& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].start >= slots[i].end) return false;
    if (i > 0 && slots[i].start < slots[i - 1].end) return false;
  }
  return true;
}

TEST(Slots, IntersectAndSubtractOfRandomLists) {
  testing::Random random(5);
  for (int i = 0; i < 2000; ++i) {
    const Slots a = RandomSlots(random);
    const Slots b = RandomSlots(random);
    const Slots both = Intersect(a, b);
    const Slots left = Subtract(a, b);
    EXPECT_EQ(Bits(both), Bits(a) & Bits(b));
    EXPECT_EQ(Bits(left), Bits(a) & ~Bits(b));
    EXPECT_TRUE(WellFormed(both) && WellFormed(left));
  }
}

TEST(Slots, AnOpOfNoLengthCutsItsSlotInTwo) {
  EXPECT_EQ(Subtract(Make({{0, 10}}), Make({{4, 4}})), Make({{0, 4}, {4, 10}}));
  EXPECT_EQ(Subtract(Make({{0, 10}}), Make({{0, 0}, {10, 10}})), Make({{0, 10}}));
  EXPECT_EQ(Subtract(Make({{0, 10}}), Make({{4, 4}, {4, 6}})), Make({{0, 4}, {6, 10}}));
}

TEST(Slots, OfAPipelineAreWhatAllItsLanesHave) {
  Problem problem;
  problem.llm.stages.resize(2);
  problem.lanes = 2;
  problem.tensor_parallel = 2;
  std::vector<LaneSlots> lanes(4);
  lanes[2] = {Make({{0, 10}}), Make({{0, 3}})};
  lanes[3] = {Make({{5, 20}}), Make({{1, 2}})};
  EXPECT_EQ(SlotsOf(lanes, problem, {1, 0, 2}), (LaneSlots{Make({{5, 10}}), Make({{1, 2}})}));
  EXPECT_EQ(SlotsOf(lanes, problem, {1, 1, 1}), lanes[3]);
}

}  // namespace
}  // namespace optimus::bubble
