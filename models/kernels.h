#pragma once
// Kernels with their FLOPs and HBM traffic. Internal to models/.

#include <cstdint>
#include <string>
#include <vector>

#include "base/kernel.h"
#include "models/gpu_shape.h"
#include "models/layers.h"

namespace optimus::models {

// Y[tokens, out] = X[tokens, in] W[in, out] and its two gradients. A linear layer's own bias and
// activation ride in the GEMM's epilogue: their extra traffic is taken as zero.
struct Linear {
  std::string name;
  std::int64_t tokens = 0, in = 0, out = 0;
};
Kernel Forward(const Linear& linear);
Kernel DataGradient(const Linear& linear);
// Accumulates into the fp32 main gradient: reads and writes 4 bytes an element of the output.
Kernel WeightGradient(const Linear& linear);

Kernel MemoryBound(std::string name, Bytes bytes);

// The attention core of one layer, without its projections, in issue order. Flash: one kernel; its
// backward does 2.5 times the forward's FLOPs (it recomputes QK^T; Dao, arXiv 2307.08691, section
// 4.1). Unfused: GEMMs over the whole s x s matrix even where the mask is causal.
std::vector<Kernel> AttentionForward(const GpuShape& gpu, const LayerShape& shape);
std::vector<Kernel> AttentionBackward(const GpuShape& gpu, const LayerShape& shape);

}  // namespace optimus::models
