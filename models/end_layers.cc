// Embedding, LM head with loss, projector. The few bytes of all-reduce that a vocabulary-parallel
// loss needs (two numbers a token) are ignored.

#include <utility>

#include "models/block_builder.h"
#include "models/gpu_shape.h"
#include "models/kernels.h"
#include "models/layer_pieces.h"
#include "models/layers.h"

namespace optimus::models {
namespace {

Linear HeadLinear(const GpuShape& gpu) {
  return {"lm_head", gpu.tokens, gpu.hidden, gpu.vocabulary};
}

// Logits in and out: probabilities and the loss forward, the logits' gradient backward.
Kernel CrossEntropy(const GpuShape& gpu, const char* name) {
  return MemoryBound(name, Bytes(2 * gpu.tokens * gpu.vocabulary * kBf16Bytes));
}

Linear ProjectorLinear(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                       const LayerShape& shape) {
  return {"projector", shape.tokens(), encoder.hidden_size(),
          llm_hidden_size / shape.tensor_parallel};
}

}  // namespace

Block EmbeddingForward(const ModelConfig& model, const LayerShape& shape) {
  BlockBuilder block;
  if (model.vocabulary_size() > 0) {
    const GpuShape gpu = MakeGpuShape(model, shape);
    block.Add(MemoryBound("embedding", gpu.gathered() * 2));  // a row in, a row out, for each token
    Leave(block, gpu, shape, "embedding");
  }
  return std::move(block).Finish();
}

Block EmbeddingBackward(const ModelConfig& model, const LayerShape& shape, Gradients gradients) {
  BlockBuilder block(gradients);
  if (model.vocabulary_size() > 0) {
    const GpuShape gpu = MakeGpuShape(model, shape);
    block.SetPhase(Phase::kBackward);
    Enter(block, gpu, shape, "embedding_dgrad");
    // bf16 gradient in (one access), added to an fp32 main gradient (four).
    block.Add(MemoryBound("embedding_dgrad", gpu.gathered() * 5));
  }
  return std::move(block).Finish();
}

Block HeadForward(const ModelConfig& model, const LayerShape& shape) {
  BlockBuilder block;
  if (model.vocabulary_size() > 0) {
    const GpuShape gpu = MakeGpuShape(model, shape);
    block.Add(MemoryBound("final_norm", gpu.local() * 2));
    Enter(block, gpu, shape, "lm_head");
    block.Add(Forward(HeadLinear(gpu)));
    block.Add(CrossEntropy(gpu, "cross_entropy"));
  }
  return std::move(block).Finish();
}

Block HeadBackward(const ModelConfig& model, const LayerShape& shape, Gradients gradients) {
  BlockBuilder block(gradients);
  if (model.vocabulary_size() > 0) {
    const GpuShape gpu = MakeGpuShape(model, shape);
    block.SetPhase(Phase::kBackward);
    block.Add(CrossEntropy(gpu, "cross_entropy_dgrad"));
    block.Add(DataGradient(HeadLinear(gpu)));
    LeaveWithWeightGradient(block, gpu, shape, "lm_head_dgrad", WeightGradient(HeadLinear(gpu)));
    block.Add(MemoryBound("final_norm_dgrad", gpu.local() * 3));
  }
  return std::move(block).Finish();
}

Block ProjectorForward(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                       const LayerShape& shape) {
  BlockBuilder block;
  block.Add(Forward(ProjectorLinear(encoder, llm_hidden_size, shape)));
  return std::move(block).Finish();
}

Block ProjectorBackward(const ModelConfig& encoder, std::int64_t llm_hidden_size,
                        const LayerShape& shape, Gradients gradients) {
  const Linear linear = ProjectorLinear(encoder, llm_hidden_size, shape);
  BlockBuilder block(gradients);
  if (shape.recompute == Recompute::kFull) {
    block.SetPhase(Phase::kRecompute);
    block.Add(Forward(linear));
    block.RequireInput();
  }
  block.SetPhase(Phase::kBackward);
  block.Add(DataGradient(linear));
  block.AddWeightGradient(WeightGradient(linear));
  return std::move(block).Finish();
}

}  // namespace optimus::models
