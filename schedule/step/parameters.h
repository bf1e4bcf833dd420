#pragma once
// Parameters that one GPU of a virtual stage holds.

#include <cstdint>
#include <vector>

#include "schedule/step/placing.h"
#include "schedule/step/stack.h"

namespace optimus::step {

// Of one item, on one GPU of its tensor-parallel group; without a tied copy of the embedding.
std::int64_t ItemParameters(const Stack& stack, const Item& item);

struct ChunkParameters {
  std::int64_t all = 0;      // held in bf16
  std::int64_t trained = 0;  // of those, the ones with gradients and optimizer state
};

// Of items [begin, end). `tied_copy`: the head, if it is among them, has a copy of the embedding.
ChunkParameters CountRange(const Stack& stack, int begin, int end, bool tied_copy);

// By virtual stage. With tied embeddings the head's stage keeps a copy of the token embedding
// unless the embedding is on the same stage (Megatron-LM).
std::vector<ChunkParameters> CountChunkParameters(const Stack& stack, const ItemRanges& ranges,
                                                  const Placing& placing);

// True if that copy exists: then the gradients of the two are summed between the stages.
bool HasTiedCopy(const Stack& stack, const ItemRanges& ranges, const Placing& placing);

// Of an item, on one GPU, those that a tied copy has in common with its original: the token table
// of the embedding and of the head. 0 for other items, and where they are not trained.
std::int64_t TiedParameters(const Stack& stack, const Item& item);

}  // namespace optimus::step
