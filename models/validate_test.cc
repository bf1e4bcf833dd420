#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "models/accounting.h"
#include "models/testing_models.h"

namespace optimus::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void ExpectRefused(const absl::Status& status, const std::string& field, const std::string& hint) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("small-llama"), HasSubstr(field), HasSubstr(hint)));
}

TEST(ValidateModel, AcceptsTheSmallOnes) {
  for (const int tp : {1, 2, 4, 8, 16}) {
    EXPECT_TRUE(ValidateModel(SmallGpt(), tp).ok());
    EXPECT_TRUE(ValidateModel(SmallVit(), tp).ok());
    EXPECT_TRUE(ValidateModel(SmallLlama(), tp).ok());
  }
}

struct BadModel {
  const char* field;
  std::function<void(ModelConfig&)> spoil;
  int tensor_parallel;
  const char* hint;
};

TEST(ValidateModel, NamesTheFieldAndHints) {
  const BadModel cases[] = {
      {"hidden_size", [](auto& m) { m.set_hidden_size(0); }, 1, "between 1 and"},
      {"hidden_size", [](auto& m) { m.set_hidden_size(-1024); }, 1, "between 1 and"},
      {"hidden_size", [](auto& m) { m.set_hidden_size(1LL << 40); }, 1, "between 1 and"},
      {"num_layers", [](auto& m) { m.set_num_layers(0); }, 1, "between 1 and"},
      {"ffn_hidden_size", [](auto& m) { m.set_ffn_hidden_size(-1); }, 1, "between 1 and"},
      {"num_attention_heads", [](auto& m) { m.set_num_attention_heads(0); }, 1, "between 1 and"},
      {"num_query_groups", [](auto& m) { m.set_num_query_groups(32); }, 1, "between 0 and 16"},
      {"num_query_groups", [](auto& m) { m.set_num_query_groups(-4); }, 1, "between 0 and 16"},
      {"num_query_groups", [](auto& m) { m.set_num_query_groups(3); }, 1, "not a multiple"},
      {"head_dim", [](auto& m) { m.set_head_dim(-1); }, 1, "between 0 and"},
      {"vocabulary_size", [](auto& m) { m.set_vocabulary_size(-1); }, 1, "between 0 and"},
      {"max_position_embeddings", [](auto& m) { m.set_max_position_embeddings(-1); }, 1, "between"},
      {"activation is not set", [](auto& m) { m.clear_activation(); }, 1, "GELU or SWIGLU"},
      {"activation: unknown value 99",
       [](auto& m) { m.set_activation(static_cast<ModelConfig::Activation>(99)); }, 1, "or SWIGLU"},
      {"attention: unknown value -1",
       [](auto& m) { m.set_attention(static_cast<ModelConfig::Attention>(-1)); }, 1, "or FULL"},
      {"norm: unknown value 3", [](auto& m) { m.set_norm(static_cast<ModelConfig::Norm>(3)); }, 1,
       "or RMS_NORM"},
      {"attention", [](auto& m) { m.clear_attention(); }, 1, "CAUSAL or FULL"},
      {"norm", [](auto& m) { m.clear_norm(); }, 1, "LAYER_NORM or RMS_NORM"},
      {"set head_dim", [](auto& m) { m.set_head_dim(0), m.set_hidden_size(1000); }, 1,
       "num_attention_heads 16"},
      {"tensor parallelism is 0", [](auto&) {}, 0, "at least 1"},
      {"num_attention_heads 16", [](auto&) {}, 32, "divides it"},
      {"hidden_size 1000", [](auto& m) { m.set_hidden_size(1000); }, 16, "divides it"},
      {"ffn_hidden_size 2820", [](auto& m) { m.set_ffn_hidden_size(2820); }, 8, "divides it"},
      {"vocabulary_size 32001", [](auto& m) { m.set_vocabulary_size(32001); }, 8, "to 32008"},
      {"num_query_groups 6",
       [](auto& m) { m.set_num_query_groups(6), m.set_num_attention_heads(12); }, 4,
       "do not divide each other"},
  };
  for (const BadModel& bad : cases) {
    SCOPED_TRACE(bad.field);
    ModelConfig model = SmallLlama();
    bad.spoil(model);
    ExpectRefused(ValidateModel(model, bad.tensor_parallel), bad.field, bad.hint);
  }
}

ModelConfig Large(std::int64_t hidden, std::int64_t ffn, int layers) {
  ModelConfig model = SmallLlama();
  model.set_hidden_size(hidden);
  model.set_ffn_hidden_size(ffn);
  model.set_num_layers(layers);
  model.set_head_dim(hidden / model.num_attention_heads());
  return model;
}

// Every field at its own limit, but 2e17 parameters: their optimizer traffic leaves 64 bits.
TEST(ValidateModel, BoundsTheParametersOfAllLayersTogether) {
  ExpectRefused(ValidateModel(Large(1 << 20, 1 << 22, 1 << 14), 8), "num_layers 16384",
                "at most 1e+15");
  EXPECT_TRUE(ValidateModel(Large(1 << 20, 1 << 22, 32), 8).ok());
  EXPECT_TRUE(ValidateModel(Large(1 << 13, 1 << 15, 1 << 14), 8).ok());
}

TEST(ValidateShape, BoundsTheFlopsOfAKernel) {
  const ModelConfig model = Large(1 << 20, 1 << 22, 16);
  // 2 * hidden * (2 * ffn) * tokens / 8, SwiGLU.
  EXPECT_TRUE(ValidateShape(model, Shape(2048, 2048, 8)).ok());
  ExpectRefused(ValidateShape(model, Shape(4096, 2048, 8)), "4096 sequences of 2048 tokens",
                "FLOP; at most");
  // Attention grows with the square of the sequence.
  const ModelConfig small = SmallLlama();
  EXPECT_TRUE(ValidateShape(small, Shape(1, 1 << 20, 8)).ok());
  ExpectRefused(ValidateShape(small, Shape(1, std::int64_t{1} << 26, 1)), "67108864 tokens",
                "at most");
}

TEST(ValidateShape, RefusesWhatDoesNotSplitOrFit) {
  const ModelConfig model = SmallLlama();
  EXPECT_TRUE(ValidateShape(model, Shape(1, 512, 8)).ok());
  ExpectRefused(ValidateShape(model, Shape(0, 512, 8)), "0 sequences", "at least 1");
  ExpectRefused(ValidateShape(model, Shape(1, -5, 8)), "-5 tokens", "at least 1");
  ExpectRefused(ValidateShape(model, Shape(1, 509, 8)), "sequence_length 509", "pad it");
  LayerShape whole = Shape(1, 509, 8);
  whole.sequence_parallel = false;
  EXPECT_TRUE(ValidateShape(model, whole).ok());
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 8 * 8;
  ExpectRefused(ValidateShape(model, Shape(kHuge, kHuge, 8)), "micro-batch", "too large");
}

}  // namespace
}  // namespace optimus::models
