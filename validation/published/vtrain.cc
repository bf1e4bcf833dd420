// Iteration times of many plans, measured to validate vTrain.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"

namespace optimus::validation {
namespace {

constexpr std::int64_t kVocabulary = 51200;

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  const GptShape shape = ShapeOf(row, kVocabulary, /*positions=*/row.count("sequence"));
  const Job job = JobOf(row, "a100-80gb-4nic", row.count("sequence"));
  OPTIMUS_RETURN_IF_ERROR(CheckJob(row, shape, job));
  step::Experiment experiment = MegatronJob(shape, job);
  UsePlanOf2021(*experiment.mutable_plan());
  OPTIMUS_ASSIGN_OR_RETURN(const Picoseconds step, simulator.StepTime(experiment));
  RowResult result;
  result.figures.push_back({"step", "s", absl::StrCat(row.text("params_b"), "B"),
                            row.number("iteration_ms") * 1e-3, ToSeconds(step)});
  return result;
}

}  // namespace

DataSet VTrainMultiNode() {
  return {
      .name = "vtrain_multi_node",
      .title = "Iteration times of many parallel plans by Megatron-DeepSpeed, A100",
      .source =
          "Bang et al., vTrain, MICRO 2024 (arXiv 2312.12391), VIA-Research/vTrain, "
          "data/ground_truth_multi.csv",
      .columns = {NumberColumn("params_b"), CountColumn("gpus"), CountColumn("global_batch"),
                  CountColumn("micro_batch"), CountColumn("hidden"), CountColumn("heads"),
                  CountColumn("layers"), CountColumn("sequence"), CountColumn("tp"),
                  CountColumn("dp"), CountColumn("pp"), NumberColumn("iteration_ms")},
      .conditions = {"params_b", "gpus", "micro_batch", "tp", "dp", "pp"},
      .assumptions =
          {"profile a100-80gb-4nic; 1F1B, full recomputation, 8 GPUs a node (all published); no "
           "sequence parallelism, no distributed optimizer: gradients are all-reduced after the "
           "last backward",
           "data-parallel groups with two or four GPUs in a node reach half of its NICs "
           "(shared_nics of the profile)",
           "vocabulary 51200 (GPT-2's, padded), tied embeddings, learned positions",
           kSoftwareOf2021},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
