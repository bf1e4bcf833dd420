#include "hw_profiles/gemm_tiles.h"

#include <algorithm>
#include <cmath>

namespace optimus::hw {
namespace {

struct Tile {
  double rows = 0, columns = 0, efficiency = 1;
};

constexpr double kPartBytes = 8;  // an fp32 element, written and read

double Parts(std::int64_t size, double tile) { return std::ceil(static_cast<double>(size) / tile); }

Tiling Cut(const GemmTiles& tiles, const GemmShape& shape, const Tile& tile, int splits) {
  const double sms = tiles.streaming_multiprocessors().value();
  const double elements = static_cast<double>(shape.m) * static_cast<double>(shape.n);
  const double jobs = Parts(shape.m, tile.rows) * Parts(shape.n, tile.columns) * splits;
  const double waves = std::ceil(jobs / sms);
  const double depth = static_cast<double>(shape.k) / splits;
  const double places = waves * sms * tile.rows * tile.columns / splits;
  Tiling result;
  result.useful = tile.efficiency * elements / places * depth / (depth + tiles.fill_k().value());
  result.splits = splits;
  result.extra_bytes = splits > 1 ? kPartBytes * elements * splits : 0;
  return result;
}

}  // namespace

std::vector<Tiling> Tilings(const GemmTiles& tiles, const GemmShape& shape) {
  const double rows = tiles.tile_rows().value(), columns = tiles.tile_columns().value();
  const double small_rows = tiles.small_tile_rows().value();
  const double small_columns = tiles.small_tile_columns().value();
  const double small = tiles.small_tile_efficiency().value();
  std::vector<Tiling> all;
  for (const Tile& tile :
       {Tile{rows, columns, 1}, Tile{columns, rows, 1}, Tile{small_rows, small_columns, small},
        Tile{small_columns, small_rows, small}}) {
    for (int splits = 1; splits <= tiles.most_splits().value(); splits *= 2) {
      const double depth = static_cast<double>(shape.k) / splits;
      if (splits > 1 && depth < tiles.fill_k().value()) break;
      all.push_back(Cut(tiles, shape, tile, splits));
    }
  }
  return all;
}

double TiledSeconds(const GemmTiles& tiles, const Kernel& gemm, double flops_per_s,
                    double bytes_per_s) {
  double best = HUGE_VAL;
  for (const Tiling& tiling : Tilings(tiles, gemm.gemm)) {
    const double math = gemm.flops.value() / (flops_per_s * tiling.useful);
    const double memory =
        (static_cast<double>(gemm.bytes.value()) + tiling.extra_bytes) / bytes_per_s;
    best = std::min(best, std::max(math, memory));
  }
  return best;
}

}  // namespace optimus::hw
