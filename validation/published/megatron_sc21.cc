// Megatron-LM's weak scaling on Selene.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "validation/published/data_set.h"
#include "validation/published/gpt.h"
#include "validation/published/search.h"

namespace optimus::validation {
namespace {

using step::Plan;

constexpr std::int64_t kSequence = 2048;
constexpr std::int64_t kVocabulary = 51200;

// The interleaved schedule where there is a pipeline; how many chunks is not published.
absl::StatusOr<std::vector<int>> ChunksOf(const Row& row) {
  const int layers = row.count("layers");
  const int stages = row.count("pp");
  if (stages == 1) return std::vector<int>{1};
  if (layers % stages != 0) {
    return row.Error("pp", absl::StrCat("does not divide ", layers, " layers"));
  }
  std::vector<int> chunks = Divisors(layers / stages);
  if (chunks.size() > 1) chunks.erase(chunks.begin());
  return chunks;
}

absl::StatusOr<RowResult> Evaluate(const Row& row, Simulator& simulator) {
  const GptShape shape = {.name = "GPT-" + row.text("params_b") + "B",
                          .hidden = row.count("hidden"),
                          .heads = row.count("heads"),
                          .layers = row.count("layers"),
                          .vocabulary = kVocabulary,
                          .positions = kSequence};
  const Job job = {.profile = "a100-80gb",
                   .gpus = row.count("gpus"),
                   .tensor_parallel = row.count("tp"),
                   .pipeline_parallel = row.count("pp"),
                   .global_batch = row.count("global_batch"),
                   .sequence = kSequence};
  step::Experiment experiment = MegatronJob(shape, job);
  Plan& plan = *experiment.mutable_plan();
  UseSoftwareOf2021(plan);
  plan.set_no_sequence_parallel(true);
  plan.set_recompute(Plan::RECOMPUTE_FULL);
  plan.set_no_distributed_optimizer(true);
  OPTIMUS_ASSIGN_OR_RETURN(const std::vector<int> chunks, ChunksOf(row));
  OPTIMUS_ASSIGN_OR_RETURN(const Cut cut, FastestCut(experiment, chunks, simulator));
  const double flops = MegatronFlops(shape, job.global_batch, kSequence, /*full_recompute=*/true);
  RowResult result;
  result.figures.push_back({"step", "s", "",
                            flops / (row.number("tflops_per_gpu") * 1e12 * job.gpus),
                            ToSeconds(cut.step)});
  result.note = cut.Text();
  return result;
}

}  // namespace

DataSet MegatronSc21() {
  return {
      .name = "megatron_sc21",
      .title = "Weak scaling of Megatron-LM on Selene, A100",
      .source =
          "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters "
          "Using Megatron-LM, SC 2021, Table 1",
      .columns = {NumberColumn("params_b"), CountColumn("heads"), CountColumn("hidden"),
                  CountColumn("layers"), CountColumn("tp"), CountColumn("pp"), CountColumn("gpus"),
                  CountColumn("global_batch"), NumberColumn("tflops_per_gpu")},
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
