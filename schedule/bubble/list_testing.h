#pragma once
// A bubble problem of realistic shape, for tests of the schedulers: an interleaved 1F1B pipeline of
// transformer layers with exposed tensor-parallel collectives, and a vision encoder beside it.

#include <cstdint>

#include "schedule/bubble/problem.h"

namespace optimus::bubble {

struct PipelineShape {
  std::int32_t stages = 8, chunks = 12, micro_batches = 16;
  std::int32_t tensor_parallel = 8, lanes = 8;
  std::int32_t encoder_pipeline = 8, encoder_tensor = 8;
  std::int32_t encoder_layers = 48, slices = 4;
  bool data_parallel = true;  // the encoder's own
};

// ViT-22B beside GPT-175B, micro-batches of 2 x 2048 tokens (the encoder: 4 slices of as many),
// full recompute, one LLM layer a chunk. The default is strong scaling on 3072 GPUs.
Problem RealisticProblem(const PipelineShape& shape);

}  // namespace optimus::bubble
