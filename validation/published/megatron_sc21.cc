// Megatron-LM's weak scaling on Selene.

#include "base/status_macros.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"
#include "validation/published/search.h"

namespace optimus::validation {
namespace {

constexpr std::int64_t kSequence = 2048;
constexpr std::int64_t kVocabulary = 51200;

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  const GptShape shape = ShapeOf(row, kVocabulary, /*positions=*/kSequence);
  const Job job = JobOf(row, "a100-80gb", kSequence);
  OPTIMUS_RETURN_IF_ERROR(CheckJob(row, shape, job));
  step::Experiment experiment = MegatronJob(shape, job);
  UsePlanOf2021(*experiment.mutable_plan());
  OPTIMUS_ASSIGN_OR_RETURN(std::vector<int> chunks, ChunksOf(row));
  // The interleaved schedule where there is a pipeline; how many chunks is not published.
  if (chunks.size() > 1) chunks.erase(chunks.begin());
  OPTIMUS_ASSIGN_OR_RETURN(const Cut cut, FastestCut(experiment, chunks, simulator));
  return StepOf(cut, StepSeconds(row, shape, job, /*full_recompute=*/true));
}

}  // namespace

DataSet MegatronSc21() {
  return {
      .name = "megatron_sc21",
      .title = "Weak scaling of Megatron-LM on Selene, A100",
      .source =
          "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters "
          "Using Megatron-LM, SC 2021, Table 1",
      .columns = TableOfModelsColumns(),
      .conditions = {"params_b", "gpus"},
      .assumptions =
          {"measured seconds = 96 B s l h^2 (1 + s/(6h) + V/(16lh)) / (TFLOP/s x GPUs), the "
           "source's own count of FLOPs; s 2048, V 51200",
           "profile a100-80gb; full recomputation; no sequence parallelism, no distributed "
           "optimizer: gradients are all-reduced after the last backward",
           kSoftwareOf2021,
           "the interleaved schedule with scattered messages wherever there is a pipeline; neither "
           "micro-batch size nor model chunks are published: of all divisors the cut that the "
           "simulator finds fastest and that fits into memory"},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
