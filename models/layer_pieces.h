#pragma once
// What layers.cc and end_layers.cc share: where collectives go under tensor parallelism. Internal
// to models/.

#include <string>

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

}  // namespace optimus::models
