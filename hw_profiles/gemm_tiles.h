#pragma once
// How a GEMM's rate depends on its shape. Internal to hw_profiles; others use ProfileCostModel.
//
//       n ->            C is cut into tiles, and a streaming multiprocessor (SM) computes one tile
//   m  +---+---+-+      at a time, over the whole depth k. So the SMs work in waves: with 12 tiles
//   |  | 0 | 1 |2|      on 8 SMs the second wave leaves 4 of them idle, and a tile that hangs over
//   v  +---+---+-+      the edge of C takes as long as a whole one. Every tile also has a start
//      | 3 | 4 |5|      (filling its pipeline from memory) and an end (writing C) that cost as much
//      +---+---+-+      as `fill_k` of depth. Where tiles are few, k is split between SMs as well:
//                       each part has its start and end, and the parts of C are added in memory.
//
// Source of the picture: NVIDIA, Matrix Multiplication Background User's Guide, "Tile
// quantization", "Wave quantization".

#include <vector>

#include "base/kernel.h"
#include "hw_profiles/profile.pb.h"

namespace optimus::hw {

// One way to compute a GEMM.
struct Tiling {
  double useful = 0;       // FLOPs of the GEMM over those the SMs could have done meanwhile, (0, 1]
  int splits = 1;          // parts of k
  double extra_bytes = 0;  // fp32 parts of C written and read again; none for one part
};

// Every tile (`tile` and `small_tile`, either way round) with k in 1, 2, 4, ... up to most_splits
// parts, each of fill_k at least; never empty. `shape` has positive sizes.
std::vector<Tiling> Tilings(const GemmTiles& tiles, const GemmShape& shape);

// Seconds, without the launch, by the fastest of them: the slower of math at `flops_per_s`
// (what a large GEMM reaches) times `useful`, and memory at `bytes_per_s` with the extra bytes.
double TiledSeconds(const GemmTiles& tiles, const Kernel& gemm, double flops_per_s,
                    double bytes_per_s);

}  // namespace optimus::hw
