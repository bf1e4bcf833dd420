#pragma once
// What layers.cc and end_layers.cc share: where collectives go under tensor parallelism. Internal
// to models/.

#include <string>
#include <utility>

#include "models/block_builder.h"
#include "models/gpu_shape.h"
#include "models/layers.h"

namespace optimus::models {

// Before a column-parallel GEMM (forward) or a row-parallel one (backward): sequence parallelism
// gathers the tokens; without it every GPU has them all already.
inline void Enter(BlockBuilder& block, const GpuShape& gpu, const LayerShape& shape,
                  const std::string& name) {
  if (shape.tensor_parallel == 1 || !shape.sequence_parallel) return;
  block.Add(CollectiveWork{CollectiveKind::kAllGather, name + "_all_gather", gpu.gathered()});
}

// After a row-parallel GEMM (forward) or a column-parallel one (backward): sums the partial results
// of the group, and under sequence parallelism leaves each GPU its own tokens only.
inline void Leave(BlockBuilder& block, const GpuShape& gpu, const LayerShape& shape,
                  const std::string& name) {
  if (shape.tensor_parallel == 1) return;
  if (shape.sequence_parallel) {
    block.Add(
        CollectiveWork{CollectiveKind::kReduceScatter, name + "_reduce_scatter", gpu.gathered()});
  } else {
    block.Add(CollectiveWork{CollectiveKind::kAllReduce, name + "_all_reduce", gpu.gathered()});
  }
}

// Leave behind a column-parallel layer's input gradient, with its weight gradient, which runs under
// the collective unless the shape says that the collective waits for it.
inline void LeaveWithWeightGradient(BlockBuilder& block, const GpuShape& gpu,
                                    const LayerShape& shape, const std::string& name,
                                    Kernel weight_gradient) {
  if (!shape.backward_overlap) block.AddWeightGradient(weight_gradient, /*in_chain=*/true);
  Leave(block, gpu, shape, name);
  if (shape.backward_overlap) block.AddWeightGradient(std::move(weight_gradient));
}

}  // namespace optimus::models
