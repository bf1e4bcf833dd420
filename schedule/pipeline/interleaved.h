#pragma once
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

struct InterleavedOptions {
  int stages = 1;
  int chunks = 1;  // V, model chunks per stage
  int micro_batches = 1;
  int group_size = 0;  // micro-batches per chunk before the next chunk's turn; 0: `stages`
  WarmUp warm_up = WarmUp::kMegatron;
};

// Interleaved 1F1B (Narayanan et al., SC 2021, Figure 4 bottom; Megatron-LM's
// microbatch_group_size_per_virtual_pipeline_stage). One chunk is plain 1F1B, whatever the group.
// INVALID_ARGUMENT, with what is allowed, where Megatron-LM refuses: a group outside [stages,
// micro_batches] (so also fewer micro-batches than stages), or a last short group of fewer than
// `stages` micro-batches. One stage with several chunks is accepted: its chunks take turns.
absl::StatusOr<Order> Interleaved(const InterleavedOptions& options);

}  // namespace optimus::pipeline
