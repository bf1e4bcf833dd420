#include "executor/runtime/stamp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "schedule/ir/testing.h"

namespace optimus::executor {
namespace {

ir::Schedule TwoStages() { return ir::testing::OneForwardOneBackward(2, 2, 10, 20, 5); }

TEST(StampTest, SaysWhichOperationOfWhichRank) {
  const ir::Schedule schedule = TwoStages();
  const Stamp stamp = StampOf(schedule.programs[1], 1, 1, 4);
  EXPECT_EQ(stamp.rank, 1);
  EXPECT_EQ(stamp.operation, 1);
  EXPECT_EQ(stamp.step, 4);
  EXPECT_EQ(stamp.micro_batch, 0);
  EXPECT_EQ(stamp.module, 0);
  EXPECT_EQ(stamp.layer, 1);
  EXPECT_EQ(stamp.chunk, 0);
  EXPECT_EQ(stamp.slice, -1);
  EXPECT_EQ(stamp.phase, static_cast<int>(Phase::kForward));
  EXPECT_EQ(Describe(schedule, stamp),
            "rank 1: llm layer 1 micro-batch 0 chunk 0 forward work10 (operation 1, step 4)");
}

TEST(StampTest, AnUnwrittenOneIsNothing) { EXPECT_EQ(Describe(TwoStages(), Stamp()), "nothing"); }

// What the operation table does not confirm is described by the stamp's own fields.
TEST(StampTest, OneThatFitsNoOperationIsDescribedByWhatItSays) {
  const ir::Schedule schedule = TwoStages();
  Stamp stamp = StampOf(schedule.programs[1], 1, 1, 4);
  stamp.micro_batch = 7;
  EXPECT_EQ(Describe(schedule, stamp),
            "rank 1: llm layer 1 micro-batch 7 chunk 0 forward (operation 1, step 4)");
}

TEST(StampTest, AnyBytesCanBeDescribed) {
  const ir::Schedule schedule = TwoStages();
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::array<unsigned char, sizeof(Stamp)> bytes{};
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    Stamp stamp;
    std::memcpy(&stamp, bytes.data(), bytes.size());
    if (i % 2 == 0) stamp.rank = i % 3;
    if (i % 4 == 0) stamp.operation = i % 16;
    EXPECT_FALSE(Describe(schedule, stamp).empty());
  }
}

TEST(StampTest, MembersOfACollectiveDifferInRankAndOperationOnly) {
  const ir::Schedule schedule = TwoStages();
  const Stamp a = StampOf(schedule.programs[1], 1, 1, 4);
  Stamp b = a;
  b.rank = 0;
  b.operation = 5;
  EXPECT_TRUE(SameCollective(a, b));
  b.step = 5;
  EXPECT_FALSE(SameCollective(a, b));
  // Each of the fields of the tag, and the work, counts.
  for (auto field :
       {&Stamp::module, &Stamp::layer, &Stamp::chunk, &Stamp::slice, &Stamp::phase, &Stamp::work}) {
    Stamp other = a;
    other.*field = static_cast<std::int16_t>(other.*field + 1);
    EXPECT_FALSE(SameCollective(a, other));
  }
  Stamp other = a;
  ++other.micro_batch;
  EXPECT_FALSE(SameCollective(a, other));
}

}  // namespace
}  // namespace optimus::executor
