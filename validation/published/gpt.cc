#include "validation/published/gpt.h"

namespace optimus::validation {

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
  // Two divisions: a product of two counts may not fit 32 bits.
  plan.set_data_parallel(job.gpus / job.tensor_parallel / job.pipeline_parallel);
  plan.set_tensor_parallel(job.tensor_parallel);
  plan.set_pipeline_parallel(job.pipeline_parallel);
  plan.set_schedule(step::Plan::ONE_F_ONE_B);
  plan.set_layout(step::Plan::EQUAL_LAYERS);
  return experiment;
}

void UseSoftwareOf2022(step::Plan& plan) {
  plan.set_unfused_attention(true);
  plan.set_unfused_elementwise(true);
  plan.set_synchronous_messages(true);
}

void UseSoftwareOf2021(step::Plan& plan) {
  UseSoftwareOf2022(plan);
  plan.set_no_backward_overlap(true);
}

}  // namespace optimus::validation
