#pragma once
// Parameters that one GPU of a virtual stage holds.

#include <cstdint>
#include <vector>

#include "schedule/step/stack.h"

namespace optimus::step {

struct ChunkParameters {
  std::int64_t all = 0;      // held in bf16
  std::int64_t trained = 0;  // of those, the ones with gradients and optimizer state
};

// By virtual stage; virtual stage v is on pipeline stage v mod `stages`. With tied embeddings the
// head's stage keeps a copy of the token embedding unless the embedding is on the same stage
// (Megatron-LM).
std::vector<ChunkParameters> CountChunkParameters(const Stack& stack, const ItemRanges& ranges,
                                                  int stages);

// True if that copy exists: then Megatron-LM also sums its gradients between the two stages.
bool HasTiedCopy(const Stack& stack, const ItemRanges& ranges, int stages);

}  // namespace optimus::step
