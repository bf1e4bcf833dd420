#include "executor/numerics/reference.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace optimus::executor::numerics {
namespace {

models::ModelConfig Config(const char* name, int layers, int hidden, int vocabulary) {
  models::ModelConfig config;
  config.set_name(name);
  config.set_hidden_size(hidden);
  config.set_num_layers(layers);
  config.set_ffn_hidden_size(std::int64_t{2} * hidden);
  config.set_num_attention_heads(2);
  config.set_vocabulary_size(vocabulary);
  config.set_activation(models::ModelConfig::GELU);
  config.set_attention(vocabulary > 0 ? models::ModelConfig::CAUSAL : models::ModelConfig::FULL);
  config.set_norm(models::ModelConfig::LAYER_NORM);
  config.set_linear_bias(true);
  return config;
}

NumericsModel Small() {
  NumericsModel model;
  model.llm = Config("llm", 2, 8, 12);
  model.llm.set_max_position_embeddings(6);
  model.micro_batch = 1;
  model.sequence_length = 5;
  model.global_batch = 2;
  NumericsEncoder encoder;
  encoder.model = Config("vit", 1, 6, 0);
  encoder.sequences_per_sample = 2;
  encoder.sequence_length = 4;  // 8 tokens are pooled to 5
  encoder.sequences_per_slice = 1;
  model.encoders.push_back(encoder);
  return model;
}

// The same, with every other choice: SwiGLU, RMS norm, grouped queries, tied embeddings, no biases,
// a frozen encoder, a sample without input.
NumericsModel Other() {
  NumericsModel model = Small();
  model.llm.set_activation(models::ModelConfig::SWIGLU);
  model.llm.set_norm(models::ModelConfig::RMS_NORM);
  model.llm.set_num_attention_heads(4);
  model.llm.set_num_query_groups(2);
  model.llm.set_linear_bias(false);
  model.llm.set_tied_embeddings(true);
  model.llm.set_max_position_embeddings(0);
  model.encoders[0].frozen = true;
  return model;
}

// Central differences of the loss, on up to 7 elements of every tensor.
void CheckGradients(const NumericsModel& model, std::vector<std::vector<bool>> without_input) {
  Reference reference(model, std::move(without_input));
  const double loss = reference.Step();
  EXPECT_NEAR(loss, reference.Loss(), 1e-12);
  EXPECT_GT(loss, 0.5 * std::log(static_cast<double>(model.llm.vocabulary_size())));
  for (auto& [name, tensor] : reference.tensors()) {
    if (!tensor.shape.trained) continue;
    double norm = 0;
    for (const double g : tensor.gradient) norm += g * g;
    EXPECT_GT(norm, 0) << name;
    const std::size_t step = tensor.value.size() / 7 + 1;
    for (std::size_t i = 0; i < tensor.value.size(); i += step) {
      const double value = tensor.value[i];
      constexpr double kStep = 1e-4;
      tensor.value[i] = value + kStep;
      const double above = reference.Loss();
      tensor.value[i] = value - kStep;
      const double below = reference.Loss();
      tensor.value[i] = value;
      EXPECT_NEAR(tensor.gradient[i], (above - below) / (2 * kStep), 1e-7) << name << " " << i;
    }
  }
}

TEST(Reference, GradientsAreThoseOfTheLoss) {
  CheckGradients(Small(), {{false, false}});
  CheckGradients(Other(), {{false, true}});
}

TEST(Reference, TrainsAndLeavesFrozenTensorsAlone) {
  NumericsModel model = Other();
  model.learning_rate = 0.3;
  Reference reference(model, {{false, false}});
  const auto frozen = reference.tensors().at("vit layer 0 fc1 weight").value;
  const double first = reference.Step();
  for (int i = 0; i < 20; ++i) {
    reference.Update();
    reference.Step();
  }
  EXPECT_LT(reference.Loss(), 0.7 * first);
  EXPECT_EQ(reference.tensors().at("vit layer 0 fc1 weight").value, frozen);
}

// A model of several encoders, one of them without input for all samples, has gradients of the
// others only.
TEST(Reference, AnEncoderWithoutInputHasNoGradient) {
  NumericsModel model = Small();
  model.encoders.push_back(model.encoders[0]);
  Reference reference(model, {{false, false}, {true, true}});
  reference.Step();
  const auto norm = [&](const char* name) {
    double sum = 0;
    for (const double g : reference.tensors().at(name).gradient) sum += g * g;
    return sum;
  };
  EXPECT_GT(norm("vit projector weight"), 0);
  EXPECT_EQ(norm("vit (encoder 1) projector weight"), 0);
}

}  // namespace
}  // namespace optimus::executor::numerics
