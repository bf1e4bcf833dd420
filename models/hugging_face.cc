// Hugging Face config.json (transformers' PretrainedConfig) to ModelConfig. Only architectures
// whose layers are the ones of models/layers.h; a setting that would change them is refused, never
// dropped.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "models/accounting.h"
#include "models/zoo.h"
#include "nlohmann/json.hpp"

namespace optimus::models {
namespace {

using Json = nlohmann::json;

// Reads fields of one file; the first error sticks, so that callers can read on.
class Fields {
 public:
  Fields(std::string path, const Json& json) : path_(std::move(path)), json_(json) {}

  std::int64_t Integer(const char* field) {
    if (!Has(field)) Fail(field, "is missing; it must be a whole number");
    return Integer(field, 0);
  }

  std::int64_t Integer(const char* field, std::int64_t absent) {
    if (!Has(field)) return absent;
    const Json& value = json_[field];
    if (!value.is_number_integer() || value < 1 || value > std::numeric_limits<int>::max()) {
      Fail(field, absl::StrCat("is ", value.dump(), "; it must be a whole number from 1"));
      return absent;
    }
    return value.get<std::int64_t>();
  }

  bool Bool(const char* field, bool absent) {
    if (!Has(field)) return absent;
    if (!json_[field].is_boolean()) {
      Fail(field, absl::StrCat("is ", json_[field].dump(), "; it must be true or false"));
      return absent;
    }
    return json_[field].get<bool>();
  }

  std::string String(const char* field, const std::string& absent) {
    if (!Has(field)) return absent;
    if (!json_[field].is_string()) {
      Fail(field, absl::StrCat("is ", json_[field].dump(), "; it must be a string"));
      return absent;
    }
    return json_[field].get<std::string>();
  }

  // Transformers writes null for "not set".
  bool Has(const char* field) const { return json_.contains(field) && !json_[field].is_null(); }

  void Fail(const char* field, const std::string& text) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(Message(field, text));
  }
  void Unsupported(const char* field, const std::string& text) {
    if (status_.ok()) status_ = absl::UnimplementedError(Message(field, text));
  }
  const absl::Status& status() const { return status_; }

 private:
  std::string Message(const char* field, const std::string& text) const {
    return absl::StrCat(path_, ": field '", field, "' ", text);
  }

  std::string path_;
  const Json& json_;
  absl::Status status_;
};

void RequireActivation(Fields& fields, const char* field, const std::string& absent,
                       std::initializer_list<const char*> allowed) {
  const std::string activation = fields.String(field, absent);
  std::string list;
  for (const char* name : allowed) {
    if (activation == name) return;
    absl::StrAppend(&list, list.empty() ? "" : ", ", name);
  }
  fields.Unsupported(field, absl::StrCat("is '", activation, "'; supported here: ", list));
}

// LlamaConfig; MistralConfig has the same fields and a sliding window.
ModelConfig Llama(Fields& fields) {
  ModelConfig model;
  model.set_hidden_size(fields.Integer("hidden_size"));
  model.set_ffn_hidden_size(fields.Integer("intermediate_size"));
  model.set_num_layers(static_cast<int>(fields.Integer("num_hidden_layers")));
  model.set_num_attention_heads(static_cast<int>(fields.Integer("num_attention_heads")));
  model.set_num_query_groups(static_cast<int>(fields.Integer("num_key_value_heads", 0)));
  model.set_head_dim(fields.Integer("head_dim", 0));
  model.set_vocabulary_size(fields.Integer("vocab_size"));
  model.set_tied_embeddings(fields.Bool("tie_word_embeddings", false));
  model.set_linear_bias(fields.Bool("attention_bias", false));
  if (fields.Bool("mlp_bias", false) != model.linear_bias()) {
    fields.Unsupported("mlp_bias",
                       "differs from 'attention_bias'; only both or none are supported");
  }
  if (fields.Has("sliding_window")) {
    fields.Unsupported("sliding_window", "is set; only full causal attention is supported");
  }
  RequireActivation(fields, "hidden_act", "silu", {"silu", "swish"});
  model.set_activation(ModelConfig::SWIGLU);
  model.set_attention(ModelConfig::CAUSAL);
  model.set_norm(ModelConfig::RMS_NORM);
  return model;
}

ModelConfig Gpt2(Fields& fields) {
  ModelConfig model;
  model.set_hidden_size(fields.Integer("n_embd"));
  model.set_num_layers(static_cast<int>(fields.Integer("n_layer")));
  model.set_num_attention_heads(static_cast<int>(fields.Integer("n_head")));
  model.set_ffn_hidden_size(fields.Integer("n_inner", 4 * model.hidden_size()));
  model.set_vocabulary_size(fields.Integer("vocab_size"));
  model.set_max_position_embeddings(fields.Integer("n_positions"));
  model.set_tied_embeddings(fields.Bool("tie_word_embeddings", true));
  model.set_linear_bias(true);
  RequireActivation(fields, "activation_function", "gelu_new",
                    {"gelu_new", "gelu", "gelu_fast", "gelu_pytorch_tanh"});
  model.set_activation(ModelConfig::GELU);
  model.set_attention(ModelConfig::CAUSAL);
  model.set_norm(ModelConfig::LAYER_NORM);
  return model;
}

// Patch and position embeddings and the classifier are not part of the transformer stack.
ModelConfig Vit(Fields& fields) {
  ModelConfig model;
  model.set_hidden_size(fields.Integer("hidden_size"));
  model.set_ffn_hidden_size(fields.Integer("intermediate_size"));
  model.set_num_layers(static_cast<int>(fields.Integer("num_hidden_layers")));
  model.set_num_attention_heads(static_cast<int>(fields.Integer("num_attention_heads")));
  model.set_linear_bias(true);
  if (!fields.Bool("qkv_bias", true)) {
    fields.Unsupported("qkv_bias", "is false; only layers with all biases are supported");
  }
  RequireActivation(fields, "hidden_act", "gelu",
                    {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu"});
  model.set_activation(ModelConfig::GELU);
  model.set_attention(ModelConfig::FULL);
  model.set_norm(ModelConfig::LAYER_NORM);
  return model;
}

absl::StatusOr<ModelConfig> Convert(const std::string& type, Fields& fields) {
  ModelConfig model;
  if (type == "llama" || type == "mistral") {
    model = Llama(fields);
  } else if (type == "gpt2") {
    model = Gpt2(fields);
  } else if (type == "vit") {
    model = Vit(fields);
  } else {
    fields.Unsupported("model_type",
                       absl::StrCat("is '", type, "'; supported: gpt2, llama, mistral, vit"));
  }
  OPTIMUS_RETURN_IF_ERROR(fields.status());
  return model;
}

}  // namespace

absl::StatusOr<ModelConfig> ImportHuggingFaceConfig(const std::string& path) {
  OPTIMUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a JSON object; expected a Hugging Face config.json"));
  }
  Fields fields(path, json);
  const std::string type = fields.String("model_type", "");
  if (type.empty()) fields.Fail("model_type", "is missing or empty; it says which model this is");
  OPTIMUS_RETURN_IF_ERROR(fields.status());
  OPTIMUS_ASSIGN_OR_RETURN(ModelConfig model, Convert(type, fields));
  const std::string name = fields.String("_name_or_path", "");
  OPTIMUS_RETURN_IF_ERROR(fields.status());
  model.set_name(name.empty() ? type : name);
  model.set_source(absl::StrCat("Hugging Face config.json: ", path));
  const absl::Status valid = ValidateModel(model, /*tensor_parallel=*/1);
  if (!valid.ok()) return absl::Status(valid.code(), absl::StrCat(path, ": ", valid.message()));
  return model;
}

}  // namespace optimus::models
