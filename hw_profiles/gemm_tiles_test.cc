// Tiles against a slow twin that deals them to multiprocessors one by one.

#include "hw_profiles/gemm_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hw_profiles/profile.h"

namespace optimus::hw {
namespace {

constexpr double kRate = 1e12, kMemory = 1e9;

GemmTiles SmallGpu() {
  GemmTiles tiles;
  tiles.mutable_streaming_multiprocessors()->set_value(8);
  tiles.mutable_tile_rows()->set_value(256);
  tiles.mutable_tile_columns()->set_value(128);
  tiles.mutable_small_tile_rows()->set_value(128);
  tiles.mutable_small_tile_columns()->set_value(128);
  tiles.mutable_small_tile_efficiency()->set_value(0.9);
  tiles.mutable_fill_k()->set_value(100);
  tiles.mutable_most_splits()->set_value(4);
  return tiles;
}

Kernel Gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bytes = 0) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.gemm = {m, n, k};
  kernel.flops =
      Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  kernel.bytes = Bytes(bytes);
  return kernel;
}

// Deals every part of every tile to the multiprocessor that is free first, and returns when the
// last one ends. A part costs its whole tile's FLOPs at the multiprocessor's rate, and fill_k more.
double Deal(const GemmTiles& tiles, const GemmShape& g, std::int64_t rows, std::int64_t columns,
            double efficiency, int splits) {
  const auto sms = static_cast<std::size_t>(tiles.streaming_multiprocessors().value());
  std::vector<double> free(sms, 0);
  const double depth = static_cast<double>(g.k) / splits + tiles.fill_k().value();
  const double rate = kRate / static_cast<double>(sms) * efficiency;
  const double part = 2.0 * static_cast<double>(rows * columns) * depth / rate;
  for (std::int64_t row = 0; row < g.m; row += rows) {
    for (std::int64_t column = 0; column < g.n; column += columns) {
      for (int split = 0; split < splits; ++split)
        *std::min_element(free.begin(), free.end()) += part;
    }
  }
  return *std::max_element(free.begin(), free.end());
}

double Slowly(const GemmTiles& tiles, const Kernel& kernel) {
  double best = HUGE_VAL;
  const struct {
    std::int64_t rows, columns;
    double efficiency;
  } shapes[] = {{256, 128, 1}, {128, 256, 1}, {128, 128, 0.9}};
  for (const auto& tile : shapes) {
    for (const int splits : {1, 2, 4}) {
      if (splits > 1 && kernel.gemm.k < std::int64_t{100} * splits) continue;
      const double parts =
          splits > 1 ? 8.0 * splits * static_cast<double>(kernel.gemm.m * kernel.gemm.n) : 0;
      const double memory = (static_cast<double>(kernel.bytes.value()) + parts) / kMemory;
      const double math =
          Deal(tiles, kernel.gemm, tile.rows, tile.columns, tile.efficiency, splits);
      best = std::min(best, std::max(math, memory));
    }
  }
  return best;
}

TEST(GemmTiles, AsDealtOneByOne) {
  const GemmTiles tiles = SmallGpu();
  for (const std::int64_t m : {1, 100, 128, 256, 257, 2048, 5000}) {
    for (const std::int64_t n : {64, 128, 300, 1024}) {
      for (const std::int64_t k : {16, 99, 200, 800, 8192}) {
        for (const std::int64_t bytes : {std::int64_t{0}, 2 * (m * k + k * n + m * n)}) {
          const Kernel kernel = Gemm(m, n, k, bytes);
          EXPECT_NEAR(TiledSeconds(tiles, kernel, kRate, kMemory) / Slowly(tiles, kernel), 1, 1e-9)
              << m << " " << n << " " << k << " " << bytes;
        }
      }
    }
  }
}

TEST(GemmTiles, ClosedForms) {
  GemmTiles tiles = SmallGpu();
  // 8 tiles of 256 x 128 on 8 multiprocessors: one full wave; only the start and the end are lost.
  EXPECT_NEAR(TiledSeconds(tiles, Gemm(2048, 128, 900), kRate, 1e30),
              2.0 * 2048 * 128 * (900 + 100) / kRate, 1e-15);
  // One tile more: a second wave, as long as the first (k is too small to be split).
  tiles.mutable_most_splits()->set_value(1);
  tiles.mutable_small_tile_efficiency()->set_value(0.1);
  EXPECT_NEAR(TiledSeconds(tiles, Gemm(2304, 128, 900), kRate, 1e30),
              2 * TiledSeconds(tiles, Gemm(2048, 128, 900), kRate, 1e30), 1e-15);
}

TEST(GemmTiles, UsefulIsAShare) {
  for (const std::int64_t m : {1, 77, 4096}) {
    for (const std::int64_t n : {8, 3000}) {
      for (const std::int64_t k : {1, 64, 10000}) {
        const std::vector<Tiling> all = Tilings(SmallGpu(), {m, n, k});
        ASSERT_FALSE(all.empty());
        for (const Tiling& tiling : all) {
          EXPECT_GT(tiling.useful, 0);
          EXPECT_LE(tiling.useful, 1);
        }
      }
    }
  }
}

// Large in every direction: the constant efficiency of a profile without tiles.
TEST(GemmTiles, LargeGemmsReachTheRate) {
  const Kernel kernel = Gemm(1 << 16, 1 << 16, 1 << 16);
  EXPECT_NEAR(TiledSeconds(SmallGpu(), kernel, kRate, kMemory * 1e6) * kRate / kernel.flops.value(),
              1, 0.003);
}

TEST(GemmTiles, SplittingHelpsFewDeepTilesOnly) {
  GemmTiles whole = SmallGpu();
  whole.mutable_most_splits()->set_value(1);
  const auto gain = [&](const Kernel& kernel) {
    return TiledSeconds(whole, kernel, kRate, 1e30) / TiledSeconds(SmallGpu(), kernel, kRate, 1e30);
  };
  EXPECT_GT(gain(Gemm(256, 128, 100'000)), 3);  // one tile: on 4 of 8 multiprocessors, not on one
  EXPECT_EQ(gain(Gemm(2048, 1024, 800)), 1);    // full waves already
}

// Profiles without tiles price as before; those with them never faster than the same efficiency.
TEST(GemmTiles, OptionalInAProfile) {
  HardwareProfile profile = *LoadProfile("h100-80gb");
  EXPECT_FALSE(profile.gpu().has_tiles());
  const Kernel kernel = Gemm(4096, 3072, 6144, 1 << 20);
  const Picoseconds plain = ProfileCostModel(profile).KernelTime(kernel);
  *profile.mutable_gpu()->mutable_tiles() = SmallGpu();
  profile.mutable_gpu()->mutable_tiles()->mutable_streaming_multiprocessors()->set_value(132);
  const Picoseconds tiled = ProfileCostModel(profile).KernelTime(kernel);
  EXPECT_GT(tiled, plain);
  EXPECT_LT(ToSeconds(tiled), 1.3 * ToSeconds(plain));
  // A GEMM that only says its FLOPs has no tiles.
  Kernel shapeless = kernel;
  shapeless.gemm = {};
  EXPECT_EQ(ProfileCostModel(profile).KernelTime(shapeless), plain);
}

}  // namespace
}  // namespace optimus::hw
