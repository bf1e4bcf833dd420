#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "models/accounting.h"
#include "models/zoo.h"
#include "nlohmann/json.hpp"

namespace optimus::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// The fields of meta-llama/Llama-2-7b-hf, openai-community/gpt2 and google/vit-base-patch16-224
// that describe the transformer stack.
Json Llama7b() {
  return Json::parse(R"({"model_type": "llama", "_name_or_path": "llama-2-7b",
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 32000, "hidden_act": "silu", "tie_word_embeddings": false,
    "pretraining_tp": 1, "rope_scaling": null})");
}
Json Gpt2() {
  return Json::parse(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
    "n_inner": null, "n_positions": 1024, "vocab_size": 50257,
    "activation_function": "gelu_new"})");
}
Json VitBase() {
  return Json::parse(R"({"model_type": "vit", "hidden_size": 768, "intermediate_size": 3072,
    "num_hidden_layers": 12, "num_attention_heads": 12, "hidden_act": "gelu", "qkv_bias": true,
    "image_size": 224, "patch_size": 16})");
}

class HuggingFace : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(::testing::TempDir()) / absl::StrCat("optimus_hf_", getpid());
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  absl::StatusOr<ModelConfig> Import(const std::string& text) {
    const std::string path = dir_ / "config.json";
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return LoadModel(path);
  }
  absl::StatusOr<ModelConfig> Import(const Json& json) { return Import(json.dump()); }
  void ExpectRefused(const Json& json, absl::StatusCode code, const std::string& field,
                     const std::string& hint) {
    const absl::Status status = Import(json).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("config.json"), HasSubstr(field), HasSubstr(hint)));
  }
  std::filesystem::path dir_;
};

// The numbers in these tests are the parameter counts of the published checkpoints.
TEST_F(HuggingFace, LlamaParametersAreExact) {
  const absl::StatusOr<ModelConfig> model = Import(Llama7b());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountParameters(*model), 6'738'415'616);
  EXPECT_EQ(model->name(), "llama-2-7b");
  EXPECT_EQ(model->norm(), ModelConfig::RMS_NORM);
  EXPECT_EQ(model->attention(), ModelConfig::CAUSAL);
}

// meta-llama/Meta-Llama-3-8B: grouped queries.
TEST_F(HuggingFace, GroupedQueryLlamaParametersAreExact) {
  Json json = Llama7b();
  json["intermediate_size"] = 14336;
  json["num_key_value_heads"] = 8;
  json["vocab_size"] = 128256;
  const absl::StatusOr<ModelConfig> model = Import(json);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountParameters(*model), 8'030'261'248);
}

// mistralai/Mistral-7B-v0.1 has a sliding window, v0.2 has none.
TEST_F(HuggingFace, MistralWithoutSlidingWindow) {
  Json json = Llama7b();
  json["model_type"] = "mistral";
  json["intermediate_size"] = 14336;
  json["num_key_value_heads"] = 8;
  json["sliding_window"] = nullptr;
  const absl::StatusOr<ModelConfig> model = Import(json);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountParameters(*model), 7'241'732'096);
  json["sliding_window"] = 4096;
  ExpectRefused(json, absl::StatusCode::kUnimplemented, "'sliding_window'", "causal");
}

TEST_F(HuggingFace, Gpt2ParametersAreExact) {
  const absl::StatusOr<ModelConfig> model = Import(Gpt2());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountParameters(*model), 124'439'808);
  EXPECT_TRUE(model->tied_embeddings());
  EXPECT_EQ(model->max_position_embeddings(), 1024);
}

// 12 encoder layers of ViT-B/16 and its final norm, without patch embedding and classifier.
TEST_F(HuggingFace, VitParametersAreExact) {
  const absl::StatusOr<ModelConfig> model = Import(VitBase());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountParameters(*model), 85'054'464 + 2 * 768);
  EXPECT_EQ(model->attention(), ModelConfig::FULL);
  EXPECT_EQ(model->vocabulary_size(), 0);
}

TEST_F(HuggingFace, UnknownModelTypeIsRefused) {
  Json json = Llama7b();
  json["model_type"] = "mamba";
  ExpectRefused(json, absl::StatusCode::kUnimplemented, "'model_type' is 'mamba'", "gpt2, llama");
  json.erase("model_type");
  ExpectRefused(json, absl::StatusCode::kInvalidArgument, "'model_type'", "missing");
}

TEST_F(HuggingFace, BadFieldsAreNamed) {
  const auto spoiled = [](Json json, const char* field, const Json& value) {
    json[field] = value;
    return json;
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  const auto unsupported = absl::StatusCode::kUnimplemented;
  ExpectRefused(spoiled(Llama7b(), "hidden_size", nullptr), bad, "'hidden_size'", "missing");
  ExpectRefused(spoiled(Llama7b(), "hidden_size", "big"), bad, "'hidden_size'", "whole number");
  ExpectRefused(spoiled(Llama7b(), "hidden_size", 1.5), bad, "'hidden_size'", "whole number");
  ExpectRefused(spoiled(Llama7b(), "num_hidden_layers", -1), bad, "'num_hidden_layers'", "from 1");
  ExpectRefused(spoiled(Llama7b(), "vocab_size", 1e30), bad, "'vocab_size'", "whole number");
  ExpectRefused(spoiled(Llama7b(), "num_hidden_layers", 1LL << 40), bad, "'num_hidden_layers'", "");
  ExpectRefused(spoiled(Llama7b(), "num_key_value_heads", 5), bad, "num_query_groups", "multiple");
  ExpectRefused(spoiled(Llama7b(), "tie_word_embeddings", 1), bad, "'tie_word_embeddings'", "true");
  ExpectRefused(spoiled(Llama7b(), "hidden_act", "relu"), unsupported, "'hidden_act'", "silu");
  ExpectRefused(spoiled(Llama7b(), "hidden_act", 3), bad, "'hidden_act'", "string");
  ExpectRefused(spoiled(Llama7b(), "attention_bias", true), unsupported, "'mlp_bias'", "both");
  ExpectRefused(spoiled(Gpt2(), "activation_function", "relu"), unsupported,
                "'activation_function'", "gelu");
  ExpectRefused(spoiled(VitBase(), "qkv_bias", false), unsupported, "'qkv_bias'", "biases");
}

TEST_F(HuggingFace, NotJsonIsRefused) {
  for (const std::string text : {"", "{", "[1, 2]", "hidden_size: 3"}) {
    const absl::Status status = Import(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("config.json")) << text;
  }
  EXPECT_EQ(LoadModel((dir_ / "none.json").string()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace optimus::models
