#include "executor/cuda/clock_fit.h"

#include <random>

#include "gtest/gtest.h"

namespace optimus::executor::cuda {
namespace {

TEST(ClockFit, OneBracketIsItsMiddle) {
  ClockFit fit;
  fit.Add(1000, 1600, 0);
  EXPECT_EQ(fit.origin_ns(), 1300);
  EXPECT_EQ(fit.uncertainty_ns(), 300);
}

TEST(ClockFit, BracketsTightenEachOther) {
  ClockFit fit;
  fit.Add(1000, 1600, 0);     // origin in [1000, 1600]
  fit.Add(2500, 2900, 1400);  // [1100, 1500]
  fit.Add(5000, 6000, 3600);  // [1400, 2400]
  EXPECT_EQ(fit.origin_ns(), 1450);
  EXPECT_EQ(fit.uncertainty_ns(), 50);
}

// Launching takes from 4 to 30 us, seeing the end 1 to 20 us; the GPU counts in steps of 0.5 us.
TEST(ClockFit, FindsTheOriginWithinItsUncertainty) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t origin = 1'000'000'000 + static_cast<std::int64_t>(random() % 1'000'000);
    ClockFit fit;
    std::int64_t now = origin + 5000;
    std::int64_t widest = 0;
    for (int i = 0; i < 8; ++i) {
      const std::int64_t before = now;
      const std::int64_t event = before + 4000 + static_cast<std::int64_t>(random() % 26000);
      now = event + 1000 + static_cast<std::int64_t>(random() % 19000);
      const std::int64_t ticks = (event - origin) / 500;
      fit.Add(before, now, static_cast<double>(ticks * 500));
      widest = std::max(widest, (now - before) / 2);
    }
    ASSERT_LE(std::abs(fit.origin_ns() - origin), fit.uncertainty_ns() + 500);
    ASSERT_LE(fit.uncertainty_ns(), widest);
  }
}

}  // namespace
}  // namespace optimus::executor::cuda
