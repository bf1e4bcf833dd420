#include "executor/cpu/arena.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

constexpr std::int64_t kMib = 1 << 20;

Arena Make(std::int64_t inputs, std::int64_t outputs, Element element = Element::kF32) {
  auto arena = Arena::Create(Bytes(inputs), Bytes(outputs), element);
  EXPECT_TRUE(arena.ok()) << arena.status();
  return *std::move(arena);
}

TEST(Arena, OperandsMoveOnAndStayInside) {
  Arena arena = Make(3 * kMib, kMib);
  EXPECT_EQ(arena.inputs(), Bytes(4 * kMib));  // whole huge pages
  const std::byte* begin = arena.NextInput(Bytes(1));
  const std::byte* previous = begin;
  Bytes previous_size(1);
  int rounds = 0;
  for (int i = 0; i < 1000; ++i) {
    const Bytes size(1 + std::int64_t{i} * 997 % kMib);
    const std::byte* place = arena.NextInput(size);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
    ASSERT_GE(place, begin);
    ASSERT_LE(place + size.value(), begin + arena.inputs().value());
    if (place < previous) {
      ++rounds;
      ASSERT_EQ(place, begin);
    } else {
      ASSERT_GE(place, previous + previous_size.value());  // no overlap within a round
    }
    previous = place;
    previous_size = size;
  }
  EXPECT_GT(rounds, 50);
}

TEST(Arena, SameOrderSamePlaces) {
  std::vector<std::ptrdiff_t> first, second;
  for (auto* places : {&first, &second}) {
    Arena arena = Make(2 * kMib, 2 * kMib);
    const std::byte* input = arena.NextInput(Bytes(1));
    const std::byte* output = arena.NextOutput(Bytes(1));
    for (std::int64_t i = 0; i < 50; ++i) {
      places->push_back(arena.NextInput(Bytes(1000 * i)) - input);
      places->push_back(arena.NextOutput(Bytes(5000 * i)) - output);
    }
  }
  EXPECT_EQ(first, second);
}

TEST(Arena, TheWholeRegionCanBeOneOperand) {
  Arena arena = Make(2 * kMib, 2 * kMib);
  const std::byte* first = arena.NextInput(arena.inputs());
  EXPECT_EQ(arena.NextInput(arena.inputs()), first);
}

// Small numbers in both types, not all the same; as bf16 they are no NaNs either.
TEST(Arena, InputsHoldSmallNumbers) {
  for (const Element element : {Element::kF32, Element::kBf16}) {
    Arena arena = Make(2 * kMib, kMib, element);
    const std::byte* data = arena.NextInput(arena.inputs());
    double sum = 0;
    double squares = 0;
    const std::int64_t count = arena.inputs().value() / SizeOf(element);
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(element == Element::kF32 ? reinterpret_cast<std::byte*>(&bits)
                                           : reinterpret_cast<std::byte*>(&bits) + 2,
                  data + i * SizeOf(element), SizeOf(element));
      float value = 0;
      std::memcpy(&value, &bits, 4);
      ASSERT_LE(std::abs(value), 0.5F) << i;
      sum += value;
      squares += double{value} * value;
    }
    EXPECT_NEAR(sum / static_cast<double>(count), 0, 0.01);
    EXPECT_NEAR(squares / static_cast<double>(count), 1.0 / 12, 0.005);  // uniform
  }
}

TEST(Arena, SeesWhatIsNotFinite) {
  Arena arena = Make(kMib, kMib);
  EXPECT_TRUE(arena.OutputsAreFinite());
  std::byte* place = arena.NextOutput(Bytes(4));
  const float infinite = INFINITY;
  std::memcpy(place, &infinite, 4);
  EXPECT_FALSE(arena.OutputsAreFinite());
}

TEST(Arena, RefusesWhatTheSystemHasNot) {
  const auto arena = Arena::Create(Bytes(std::int64_t{1} << 60), Bytes(1), Element::kF32);
  EXPECT_EQ(arena.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Arena, TriesWhatTheSystemGives) {
  EXPECT_TRUE(CheckAvailable(Bytes(kMib)).ok());
  const absl::Status status = CheckAvailable(Bytes(std::int64_t{1} << 60));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("refuses 1152921504606846976 bytes for the library of kernels"),
            absl::string_view::npos);
}

TEST(UsualRegion, EightTimesTheCacheWithinLimits) {
  const Bytes memory(std::int64_t{256} << 30);
  EXPECT_EQ(UsualRegion(Bytes(8 * kMib), memory), Bytes(128 * kMib));
  EXPECT_EQ(UsualRegion(Bytes(64 * kMib), memory), Bytes(256 * kMib));
  EXPECT_EQ(UsualRegion(Bytes(1024 * kMib), memory), Bytes(1024 * kMib));
  // One of 64 ranks that share 4 GiB: 16 MiB for both regions.
  EXPECT_EQ(UsualRegion(Bytes(32 * kMib), Bytes(64 * kMib)), Bytes(8 * kMib));
}

}  // namespace
}  // namespace optimus::executor
