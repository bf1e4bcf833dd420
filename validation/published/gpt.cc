#include "validation/published/gpt.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optimus::validation {
namespace {

int DataParallel(const Job& job) {
  if (job.data_parallel > 0) return job.data_parallel;
  // Two divisions: a product of two counts may not fit 32 bits.
  return job.gpus / job.tensor_parallel / job.pipeline_parallel;
}

absl::Status CheckHeads(const Row& row, const GptShape& shape, const Job& job) {
  if (shape.hidden % shape.heads != 0) {
    return row.Error("heads", absl::StrCat(shape.heads, " do not divide hidden ", shape.hidden,
                                           "; every head has the same width"));
  }
  if (shape.heads % job.tensor_parallel == 0) return absl::OkStatus();
  return row.Error("tp", absl::StrCat(job.tensor_parallel, " does not divide ", shape.heads,
                                      " heads; use a divisor"));
}

// Without overflow: each factor takes its part of what those before it left.
bool AreProduct(int whole, std::initializer_list<int> factors) {
  for (const int factor : factors) {
    if (whole % factor != 0) return false;
    whole /= factor;
  }
  return whole == 1;
}

absl::Status CheckGpus(const Row& row, const Job& job) {
  const int dp = DataParallel(job);
  const int tp = job.tensor_parallel, pp = job.pipeline_parallel;
  if (dp > 0 && AreProduct(job.gpus, {tp, pp, dp})) return absl::OkStatus();
  if (job.data_parallel > 0) {
    return row.Error("gpus", absl::StrCat(job.gpus, " are not tp * pp * dp = ", tp, " * ", pp,
                                          " * ", dp, "; change one of them"));
  }
  return row.Error("gpus", absl::StrCat(job.gpus, " are not a multiple of tp * pp = ", tp, " * ",
                                        pp, "; data parallelism takes whole pipelines"));
}

absl::Status CheckBatch(const Row& row, const Job& job) {
  const int dp = DataParallel(job);
  if (job.global_batch % dp == 0 && job.global_batch / dp % job.micro_batch == 0) {
    return absl::OkStatus();
  }
  const bool known = row.knows("micro_batch");
  return row.Error("global_batch", absl::StrCat(job.global_batch, " is not a multiple of dp",
                                                known ? " * micro_batch" : "", " = ", dp,
                                                known ? absl::StrCat(" * ", job.micro_batch) : "",
                                                "; every pipeline must get the same number of ",
                                                known ? "whole micro-batches" : "samples"));
}

}  // namespace

models::ModelConfig GptModel(const GptShape& shape) {
  models::ModelConfig model;
  model.set_name(shape.name);
  model.set_hidden_size(shape.hidden);
  model.set_num_layers(shape.layers);
  model.set_ffn_hidden_size(4 * shape.hidden);
  model.set_num_attention_heads(shape.heads);
  model.set_vocabulary_size(shape.vocabulary);
  model.set_activation(models::ModelConfig::GELU);
  model.set_attention(models::ModelConfig::CAUSAL);
  model.set_norm(models::ModelConfig::LAYER_NORM);
  model.set_linear_bias(true);
  model.set_tied_embeddings(shape.tied);
  model.set_max_position_embeddings(shape.positions);
  return model;
}

double MegatronFlops(const GptShape& shape, double batch, double sequence, bool full_recompute) {
  const auto hidden = static_cast<double>(shape.hidden);
  const auto layers = static_cast<double>(shape.layers);
  const auto vocabulary = static_cast<double>(shape.vocabulary);
  // Passes over a layer: forward once, backward twice, recomputation once more. The head has none.
  const double passes = full_recompute ? 4 : 3;
  const double layer = 24 * hidden * hidden * (1 + sequence / (6 * hidden));
  const double head = 2 * hidden * vocabulary;
  return batch * sequence * (passes * layers * layer + 3 * head);
}

step::Experiment MegatronJob(const GptShape& shape, const Job& job) {
  step::Experiment experiment;
  experiment.set_name(shape.name);
  *experiment.mutable_inline_llm() = GptModel(shape);
  experiment.mutable_hardware()->set_profile(job.profile);
  experiment.mutable_hardware()->set_gpus(job.gpus);
  step::Batch& batch = *experiment.mutable_batch();
  batch.set_global_batch(job.global_batch);
  batch.set_micro_batch(job.micro_batch);
  batch.set_sequence_length(job.sequence);
  step::Plan& plan = *experiment.mutable_plan();
  plan.set_data_parallel(DataParallel(job));
  plan.set_tensor_parallel(job.tensor_parallel);
  plan.set_pipeline_parallel(job.pipeline_parallel);
  plan.set_schedule(step::Plan::ONE_F_ONE_B);
  plan.set_layout(step::Plan::EQUAL_LAYERS);
  return experiment;
}

GptShape ShapeOf(const Row& row, std::int64_t vocabulary, std::int64_t positions) {
  return {.name = absl::StrCat("GPT-", row.text("params_b"), "B"),
          .hidden = row.count("hidden"),
          .heads = row.count("heads"),
          .layers = row.count("layers"),
          .vocabulary = vocabulary,
          .positions = positions};
}

Job JobOf(const Row& row, const char* profile, std::int64_t sequence) {
  return {.profile = profile,
          .gpus = row.count("gpus"),
          .tensor_parallel = row.count("tp"),
          .pipeline_parallel = row.count("pp"),
          .data_parallel = row.knows("dp") ? row.count("dp") : 0,
          .global_batch = row.count("global_batch"),
          .micro_batch = row.knows("micro_batch") ? row.count("micro_batch") : 1,
          .sequence = sequence};
}

absl::Status CheckJob(const Row& row, const GptShape& shape, const Job& job) {
  OPTIMUS_RETURN_IF_ERROR(CheckHeads(row, shape, job));
  OPTIMUS_RETURN_IF_ERROR(CheckGpus(row, job));
  return CheckBatch(row, job);
}

double StepSeconds(const Row& row, const GptShape& shape, const Job& job, bool full_recompute) {
  const double flops =
      MegatronFlops(shape, job.global_batch, static_cast<double>(job.sequence), full_recompute);
  return flops / (row.number("tflops_per_gpu") * 1e12 * job.gpus);
}

std::vector<Column> TableOfModelsColumns() {
  return {NumberColumn("params_b"), CountColumn("heads"),        CountColumn("hidden"),
          CountColumn("layers"),    CountColumn("tp"),           CountColumn("pp"),
          CountColumn("gpus"),      CountColumn("global_batch"), NumberColumn("tflops_per_gpu")};
}

void UseSoftwareOf2022(step::Plan& plan) {
  plan.set_unfused_attention(true);
  plan.set_unfused_elementwise(true);
  plan.set_synchronous_messages(true);
}

void UseSoftwareOf2021(step::Plan& plan) {
  UseSoftwareOf2022(plan);
  plan.set_no_backward_overlap(true);
  plan.set_grad_reduce_in_bf16(true);
}

void UsePlanOf2021(step::Plan& plan) {
  UseSoftwareOf2021(plan);
  plan.set_no_sequence_parallel(true);
  plan.set_recompute(step::Plan::RECOMPUTE_FULL);
  plan.set_no_distributed_optimizer(true);
}

}  // namespace optimus::validation
