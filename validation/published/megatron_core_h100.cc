// Megatron-Core's model table on H100.

#include <algorithm>

#include "base/status_macros.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"
#include "validation/published/search.h"

namespace optimus::validation {
namespace {

using step::Plan;

constexpr std::int64_t kSequence = 4096;
constexpr std::int64_t kVocabulary = 131072;

// Megatron-Core's default of --ddp-bucket-size.
std::int64_t BucketOf(std::int64_t data_parallel) {
  return std::max<std::int64_t>(40'000'000, 1'000'000 * data_parallel);
}

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  GptShape shape = ShapeOf(row, kVocabulary, /*positions=*/0);
  shape.tied = false;
  const Job job = JobOf(row, "h100-80gb-eos", kSequence);
  OPTIMUS_RETURN_IF_ERROR(CheckJob(row, shape, job));
  step::Experiment experiment = MegatronJob(shape, job);
  Plan& plan = *experiment.mutable_plan();
  plan.set_dp_communication(Plan::DP_OVERLAPPED);
  plan.set_dp_bucket_parameters(BucketOf(plan.data_parallel()));
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<int> chunks, ChunksOf(row));
  OPTIMUS_ASSIGN_OR_RETURN(const Cut cut, FastestCut(experiment, chunks, simulator));
  return StepOf(cut, StepSeconds(row, shape, job, /*full_recompute=*/false));
}

}  // namespace

DataSet MegatronCoreH100() {
  return {
      .name = "megatron_core_h100",
      .title = "Weak scaling of Megatron-Core, H100",
      .source = "Megatron-LM, README, table of models and achieved throughput",
      .columns = TableOfModelsColumns(),
      .conditions = {"params_b", "gpus"},
      .assumptions =
          {"measured seconds = 72 B s l h^2 (1 + s/(6h) + V/(12lh)) / (TFLOP/s x GPUs), "
           "Megatron-LM's own count of FLOPs; s 4096, V 131072 (published)",
           "profile h100-80gb-eos; FlashAttention, fused kernels, sequence parallelism, no "
           "recomputation, rotary positions, separate tables of embedding and head (the parameter "
           "counts say so)",
           "distributed optimizer, parameter all-gathers and gradient reduce-scatters overlapped "
           "(published), in buckets of 40 million parameters, or a million for each data-parallel "
           "rank where that is more (Megatron-Core's default)",
           "neither micro-batch size nor model chunks are published: of all divisors the cut that "
           "the simulator finds fastest and that fits into memory"},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
