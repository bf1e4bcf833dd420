#pragma once
// GPT models and training jobs as Megatron-LM's papers describe them, and as rows say which.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.pb.h"
#include "schedule/step/experiment.pb.h"
#include "validation/published/row.h"

namespace optimus::validation {

struct GptShape {
  std::string name;
  std::int64_t hidden = 0;
  int heads = 0, layers = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // learned; 0: rotary
  bool tied = true;            // one table for the embedding and the head
};
// FFN of four times the width, GELU, biases, causal attention, layer norm.
models::ModelConfig GptModel(const GptShape& shape);

// FLOPs of one iteration as Megatron-LM's papers count them: 72 B s l h^2 (1 + s/(6h) + V/(12lh)),
// and with full recomputation 96 B s l h^2 (1 + s/(6h) + V/(16lh)) (Narayanan et al., SC 2021,
// appendix). Attention is counted over the whole matrix, not its causal half.
double MegatronFlops(const GptShape& shape, double batch, double sequence, bool full_recompute);

struct Job {
  const char* profile = nullptr;
  int gpus = 0, tensor_parallel = 1, pipeline_parallel = 1;
  int data_parallel = 0;  // 0: gpus / (tensor_parallel * pipeline_parallel)
  int global_batch = 0, micro_batch = 1;
  std::int64_t sequence = 0;
};
// 1F1B of equal layer counts, everything else as the experiment's defaults say. Nothing is checked:
// data_parallel is 0 where there are too few GPUs.
step::Experiment MegatronJob(const GptShape& shape, const Job& job);

// Of the columns params_b, heads, hidden and layers.
GptShape ShapeOf(const Row& row, std::int64_t vocabulary, std::int64_t positions);
// Of the columns gpus, tp, pp, global_batch and, where the data set has them, dp and micro_batch.
Job JobOf(const Row& row, const char* profile, std::int64_t sequence);
// INVALID_ARGUMENT "path:line: column NAME: ..." where no plan fits: GPUs that are not
// tp * pp * dp, heads that cannot be dealt out, a batch that does not split into micro-batches.
absl::Status CheckJob(const Row& row, const GptShape& shape, const Job& job);
// The measured seconds of a step, of the column tflops_per_gpu and the source's count of FLOPs.
double StepSeconds(const Row& row, const GptShape& shape, const Job& job, bool full_recompute);
// The columns that all of these need.
std::vector<Column> TableOfModelsColumns();

// Megatron-LM of 2022: attention as separate GEMMs and softmax, bias, GELU, dropout and residual
// additions as kernels of their own; pipeline messages block.
void UseSoftwareOf2022(step::Plan& plan);
// Of 2021: also the all-reduces of the backward pass block, and gradients have fp16's 16 bits.
void UseSoftwareOf2021(step::Plan& plan);
// What 2021 trained with: its software, full recomputation, neither sequence parallelism nor a
// distributed optimizer.
void UsePlanOf2021(step::Plan& plan);
inline constexpr char kSoftwareOf2022[] =
    "software of 2022: attention as GEMMs and softmax, bias, GELU, dropout and residual as kernels "
    "of their own; a stage waits for the messages it sends";
inline constexpr char kSoftwareOf2021[] =
    "software of 2021: attention as GEMMs and softmax, bias, GELU, dropout and residual as kernels "
    "of their own; a stage waits for the messages it sends, and the all-reduces of the backward "
    "pass wait for the weight gradients (Megatron-LM overlaps them since late 2021); fp16 "
    "training, gradients kept and reduced in 16 bits";

}  // namespace optimus::validation
