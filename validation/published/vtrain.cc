// Iteration times of many plans, measured to validate vTrain.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"

namespace optimus::validation {
namespace {

using step::Plan;

constexpr std::int64_t kVocabulary = 51200;

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  const GptShape shape = {.name = "GPT-" + row.text("params_b") + "B",
                          .hidden = row.count("hidden"),
                          .heads = row.count("heads"),
                          .layers = row.count("layers"),
                          .vocabulary = kVocabulary,
                          .positions = row.count("sequence")};
  step::Experiment experiment = MegatronJob(shape, {.profile = "a100-80gb-4nic",
                                                    .gpus = row.count("gpus"),
                                                    .tensor_parallel = row.count("tp"),
                                                    .pipeline_parallel = row.count("pp"),
                                                    .global_batch = row.count("global_batch"),
                                                    .micro_batch = row.count("micro_batch"),
                                                    .sequence = row.count("sequence")});
  Plan& plan = *experiment.mutable_plan();
  plan.set_data_parallel(row.count("dp"));
  UseSoftwareOf2021(plan);
  plan.set_no_sequence_parallel(true);
  plan.set_recompute(Plan::RECOMPUTE_FULL);
  plan.set_no_distributed_optimizer(true);
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
           "vocabulary 51200 (GPT-2's, padded), tied embeddings, learned positions",
           kSoftwareOf2021},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
