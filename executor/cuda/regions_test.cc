#include "executor/cuda/regions.h"

#include <random>

#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

TEST(Regions, FollowEachOtherAndWrap) {
  Regions regions(1000);
  EXPECT_EQ(regions.Take(100), 0);
  EXPECT_EQ(regions.Take(300), 256);
  EXPECT_EQ(regions.Take(232), 768);  // to the very end
  EXPECT_EQ(regions.Take(1), 0);
  EXPECT_EQ(regions.Take(1000), 0);
  EXPECT_EQ(regions.Take(1), 0);
}

TEST(Regions, StartAgain) {
  Regions regions(1 << 20);
  const std::int64_t first = regions.Take(5000);
  const std::int64_t second = regions.Take(5000);
  EXPECT_NE(first, second);
  regions.Restart();
  EXPECT_EQ(regions.Take(5000), first);
  EXPECT_EQ(regions.Take(5000), second);
}

// Every region lies in the buffer, is aligned, and nothing comes again before all of the rest but
// what was too small at the end has been used.
TEST(Regions, AreInsideAndComeBackLate) {
  std::mt19937 random(3);
  constexpr std::int64_t kCapacity = 100000;
  constexpr std::int64_t kLargest = 20000;
  Regions regions(kCapacity);
  std::int64_t since_start = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random() % kLargest);
    const std::int64_t offset = regions.Take(bytes);
    ASSERT_EQ(offset % Regions::kAlignment, 0);
    ASSERT_GE(offset, 0);
    ASSERT_LE(offset + bytes, kCapacity);
    if (offset == 0 && i > 0) {
      ASSERT_GT(since_start, kCapacity - kLargest - Regions::kAlignment);
    } else {
      ASSERT_EQ(offset, since_start);
    }
    since_start = Regions::Align(offset + bytes);
  }
}

}  // namespace
}  // namespace optimus::executor::cuda
