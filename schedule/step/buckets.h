#pragma once
// Buckets of parameters, as Megatron-LM's distributed data parallelism has them: gradients are
// reduced, and parameters gathered, bucket by bucket under computation.

#include <cstdint>
#include <vector>

#include "schedule/step/virtual_stages.h"

namespace optimus::step {

struct Bucket {
  std::int64_t parameters = 0;        // trained, on one GPU
  int first_item = 0, last_item = 0;  // [first, last) of VirtualStage::items
};

// The trained items of a virtual stage in the order in which the backward completes their
// gradients, from the last one on; a bucket is full when it holds `least` parameters or more, and
// the last one holds what is left. Items that are not trained are in whatever bucket is around
// them. `least` is positive.
std::vector<Bucket> BucketsOf(const VirtualStage& stage, std::int64_t least);

// By piece: index of the bucket that its item is in; -1: in none.
std::vector<int> BucketOfPieces(const VirtualStage& stage, const std::vector<Bucket>& buckets,
                                const std::vector<Piece>& pieces);

}  // namespace optimus::step
