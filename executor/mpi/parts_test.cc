// The small parts that need no other rank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "executor/mpi/clock.h"
#include "executor/mpi/memory_ring.h"
#include "executor/mpi/sum.h"
#include "executor/mpi/wire.h"

namespace optimus::executor {
namespace {

TEST(ClockOffsetTest, TakesTheQuickestRoundTrip) {
  // The other clock is 1000 ahead. Ways of 40 and 60, of 5 and 5, of 500 and 10.
  const std::vector<PingPong> rounds = {{100, 1140, 200}, {300, 1305, 310}, {400, 1900, 910}};
  EXPECT_EQ(ClockOffsetNs(rounds), 1000);
  EXPECT_EQ(ClockOffsetNs(absl::MakeConstSpan(rounds).first(1)), 990);
}

TEST(ClockOffsetTest, IsNeverWrongByMoreThanHalfTheQuickestRoundTrip) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> way(1, 1000);
  for (int trial = 0; trial < 200; ++trial) {
    const std::int64_t offset = way(random) * 1000 - 500'000;
    std::vector<PingPong> rounds;
    std::int64_t now = 0, quickest = 1 << 30;
    for (int i = 0; i < 20; ++i) {
      const std::int64_t there = way(random), back = way(random);
      rounds.push_back({now, now + there + offset, now + there + back});
      quickest = std::min(quickest, there + back);
      now += there + back;
    }
    EXPECT_LE(std::abs(ClockOffsetNs(rounds) - offset), quickest / 2 + 1);
  }
}

TEST(SumPartsTest, AddsInTheOrderOfTheParts) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> number(-1, 1);
  for (const std::size_t parts : {1, 2, 3, 8}) {
    for (const std::size_t floats : {0, 1, 2047, 2048, 2049, 10'000}) {
      std::vector<std::vector<float>> data(parts, std::vector<float>(floats));
      std::vector<const float*> pointers;
      for (auto& part : data) {
        for (float& each : part) each = number(random);
        pointers.push_back(part.data());
      }
      std::vector<float> out(floats, -7);
      SumParts(pointers, static_cast<std::int64_t>(floats), out.data());
      for (std::size_t i = 0; i < floats; ++i) {
        float sum = data[0][i];
        for (std::size_t part = 1; part < parts; ++part) sum += data[part][i];
        ASSERT_EQ(out[i], sum) << parts << " parts, at " << i;
      }
    }
  }
}

constexpr Bytes kPlenty(std::int64_t{4} << 30);

TEST(MemoryRingTest, PiecesFollowEachOtherRoundAndRound) {
  MemoryRing ring;
  EXPECT_EQ(ring.Next(1), nullptr);
  ASSERT_TRUE(ring.Reserve(1000, kPlenty));
  constexpr std::int64_t kPageFloats = 1024;
  float* const first = ring.Next(1000);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(std::isnormal(first[i]));
  EXPECT_EQ(ring.Next(1025), first + kPageFloats);
  EXPECT_EQ(ring.Next(1), first + 3 * kPageFloats);
  const std::int64_t pages = MemoryRing::kLeastBytes / 4 / kPageFloats;
  for (std::int64_t page = 4; page < pages; ++page) ring.Next(1);
  EXPECT_EQ(ring.Next(1), first);
}

TEST(MemoryRingTest, GrowsForLargePiecesAndKeepsWhatIsOut) {
  MemoryRing ring;
  ASSERT_TRUE(ring.Reserve(1, kPlenty));
  float* const small = ring.Next(1);
  ASSERT_TRUE(ring.Reserve(MemoryRing::kLeastBytes / 4 / 4, kPlenty));
  float* last = nullptr;
  for (int i = 0; i < 8; ++i) {
    float* const next = ring.Next(MemoryRing::kLeastBytes / 4 / 4);
    EXPECT_NE(next, last);
    next[MemoryRing::kLeastBytes / 4 / 4 - 1] = 3;
    last = next;
  }
  small[0] = 2;  // still there
  EXPECT_EQ(ring.Next(MemoryRing::kLeastBytes / 4 * 2 + 1), nullptr);
  EXPECT_FALSE(ring.Reserve(std::int64_t{1} << 45, Bytes(std::int64_t{1} << 60)));
}

// Where memory is short, pieces lie on each other, down to a single one.
TEST(MemoryRingTest, TakesNoMoreThanItMay) {
  constexpr std::int64_t kPageFloats = 1024;
  MemoryRing ring;
  ASSERT_TRUE(ring.Reserve(2 * kPageFloats, Bytes(5 * 4096 + 1)));
  float* const first = ring.Next(2 * kPageFloats);
  EXPECT_EQ(ring.Next(2 * kPageFloats), first + 2 * kPageFloats);
  EXPECT_EQ(ring.Next(2 * kPageFloats), first);
  ASSERT_TRUE(ring.Reserve(5 * kPageFloats, Bytes(5 * 4096 + 1)));  // the same region
  EXPECT_EQ(ring.Next(5 * kPageFloats), first);
  EXPECT_FALSE(ring.Reserve(5 * kPageFloats + 1, Bytes(5 * 4096 + 1)));
  EXPECT_FALSE(ring.Reserve(std::numeric_limits<std::int64_t>::max(), kPlenty));
  EXPECT_FALSE(MemoryRing().Reserve(1, Bytes(4095)));
}

TEST(HeaderLineTest, NamesOperationKindAndSize) {
  WireHeader header;
  header.stamp.rank = 3;
  header.stamp.operation = 17;
  header.stamp.step = 4;
  header.number = 12;
  header.kind = static_cast<std::int32_t>(CollectiveKind::kAllGather);
  header.floats = 1024;
  EXPECT_EQ(HeaderLine(header, nullptr),
            "rank 3: operation 17 of step 4 (all_gather 12 of 4096 bytes)");
  const StampText text = [](const Stamp& stamp) { return "op " + std::to_string(stamp.operation); };
  header.kind = kMessage;
  EXPECT_EQ(HeaderLine(header, &text), "op 17 (message 12 of 4096 bytes)");
  header.floats = kUnknownFloats;
  EXPECT_EQ(HeaderLine(header, &text), "op 17 (message 12)");
}

}  // namespace
}  // namespace optimus::executor
