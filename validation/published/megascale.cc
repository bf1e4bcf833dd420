// The Megatron-LM column of MegaScale's strong scaling table.

#include "base/status_macros.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"
#include "validation/published/search.h"

namespace optimus::validation {
namespace {

using step::Plan;

constexpr std::int64_t kSequence = 2048;

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  const GptShape shape = {.name = "GPT-175B",
                          .hidden = 12288,
                          .heads = 128,
                          .layers = 96,
                          .vocabulary = 64000,
                          .positions = kSequence};
  const Job job = {.profile = "a100-80gb",
                   .gpus = row.count("gpus"),
                   .tensor_parallel = 8,
                   .pipeline_parallel = 8,
                   .global_batch = row.count("global_batch"),
                   .sequence = kSequence};
  OPTIMUS_RETURN_IF_ERROR(CheckJob(row, shape, job));
  step::Experiment experiment = MegatronJob(shape, job);
  Plan& plan = *experiment.mutable_plan();
  UseSoftwareOf2022(plan);
  plan.set_recompute(Plan::RECOMPUTE_SELECTIVE);
  OPTIMUS_ASSIGN_OR_RETURN(const Cut cut, FastestCut(experiment, {6}, simulator));
  return StepOf(cut, row.number("iteration_s"));
}

}  // namespace

DataSet MegaScale() {
  return {
      .name = "megascale",
      .title = "175B model by Megatron-LM, strong scaling, Ampere GPUs",
      .source = "Jiang et al., MegaScale, arXiv 2402.15627, Table 2, the rows of Megatron-LM",
      .columns = {CountColumn("global_batch"), CountColumn("gpus"), NumberColumn("iteration_s"),
                  NumberColumn("mfu_percent").OrAbsent()},
      .conditions = {"global_batch", "gpus"},
      .assumptions =
          {("profile a100-80gb (the source says Ampere, 312 TFLOP/s follow from its MFU); 128 "
            "heads, hidden 12288, 96 layers, vocabulary 64000, sequence length 2048, tensor "
            "parallelism 8, pipeline parallelism 8, 6 model chunks (all published)"),
           ("sequence parallelism with selective recomputation (FlashAttention and fused kernels "
            "are what the source adds to its baseline)"),
           kSoftwareOf2022,
           ("distributed optimizer; its communication is exposed (overlapping it is "
            "what the source adds)"),
           ("the micro-batch size is not published: of all divisors the one that the simulator "
            "finds fastest and that fits into memory")},
      .evaluate = &Evaluate};
}

}  // namespace optimus::validation
