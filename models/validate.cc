#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/accounting.h"
#include "models/gpu_shape.h"

namespace optimus::models {
namespace {

// Far above any model, low enough that no product of sizes leaves 64 bits.
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;
constexpr std::int64_t kMaxFfn = std::int64_t{1} << 22;
constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;
constexpr std::int64_t kMaxLayers = 1 << 14;
constexpr double kMaxElements = 1e17;  // of one tensor of one micro-batch

absl::Status Bad(const ModelConfig& model, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat("model '", model.name(), "': ", text));
}

absl::Status CheckRange(const ModelConfig& model, const char* field, std::int64_t value,
                        std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Bad(model,
             absl::StrCat(field, " is ", value, "; it must be between ", low, " and ", high));
}

absl::Status CheckDivides(const ModelConfig& model, const char* field, std::int64_t value,
                          int tensor_parallel, const char* hint) {
  if (value % tensor_parallel == 0) return absl::OkStatus();
  return Bad(model, absl::StrCat(field, " ", value, " is not a multiple of tensor parallelism ",
                                 tensor_parallel, "; ", hint));
}

absl::Status CheckSizes(const ModelConfig& model) {
  OPTIMUS_RETURN_IF_ERROR(CheckRange(model, "hidden_size", model.hidden_size(), 1, kMaxWidth));
  OPTIMUS_RETURN_IF_ERROR(CheckRange(model, "num_layers", model.num_layers(), 1, kMaxLayers));
  OPTIMUS_RETURN_IF_ERROR(
      CheckRange(model, "ffn_hidden_size", model.ffn_hidden_size(), 1, kMaxFfn));
  OPTIMUS_RETURN_IF_ERROR(
      CheckRange(model, "num_attention_heads", model.num_attention_heads(), 1, kMaxWidth));
  OPTIMUS_RETURN_IF_ERROR(CheckRange(model, "num_query_groups", model.num_query_groups(), 0,
                                     model.num_attention_heads()));
  OPTIMUS_RETURN_IF_ERROR(
      CheckRange(model, "head_dim", model.head_dim(), 0, kMaxWidth / model.num_attention_heads()));
  OPTIMUS_RETURN_IF_ERROR(
      CheckRange(model, "vocabulary_size", model.vocabulary_size(), 0, kMaxVocabulary));
  return CheckRange(model, "max_position_embeddings", model.max_position_embeddings(), 0,
                    kMaxVocabulary);
}

absl::Status CheckKinds(const ModelConfig& model) {
  switch (model.activation()) {
    case ModelConfig::GELU:
    case ModelConfig::SWIGLU:
      break;
    default:
      return Bad(model, "activation is not set; use GELU or SWIGLU");
  }
  switch (model.attention()) {
    case ModelConfig::CAUSAL:
    case ModelConfig::FULL:
      break;
    default:
      return Bad(model, "attention is not set; use CAUSAL or FULL");
  }
  switch (model.norm()) {
    case ModelConfig::LAYER_NORM:
    case ModelConfig::RMS_NORM:
      break;
    default:
      return Bad(model, "norm is not set; use LAYER_NORM or RMS_NORM");
  }
  return absl::OkStatus();
}

absl::Status CheckHeads(const ModelConfig& model) {
  const int heads = model.num_attention_heads();
  if (model.head_dim() == 0 && model.hidden_size() % heads != 0) {
    return Bad(model,
               absl::StrCat("hidden_size ", model.hidden_size(),
                            " is not a multiple of num_attention_heads ", heads, "; set head_dim"));
  }
  if (heads % QueryGroups(model) != 0) {
    return Bad(model,
               absl::StrCat("num_attention_heads ", heads,
                            " is not a multiple of num_query_groups ", model.num_query_groups()));
  }
  return absl::OkStatus();
}

// The largest number of elements of a tensor, in double so that it cannot overflow.
double LargestTensor(const ModelConfig& model, const LayerShape& shape) {
  const auto tokens =
      static_cast<double>(shape.sequences) * static_cast<double>(shape.sequence_length);
  const std::int64_t width =
      std::max({Fc1Width(model), 3 * HeadDim(model) * model.num_attention_heads(),
                model.vocabulary_size(), model.hidden_size()});
  const double scores =
      static_cast<double>(model.num_attention_heads()) * static_cast<double>(shape.sequence_length);
  return tokens * std::max(static_cast<double>(width), scores);
}

}  // namespace

absl::Status ValidateModel(const ModelConfig& model, int tensor_parallel) {
  OPTIMUS_RETURN_IF_ERROR(CheckSizes(model));
  OPTIMUS_RETURN_IF_ERROR(CheckKinds(model));
  OPTIMUS_RETURN_IF_ERROR(CheckHeads(model));
  if (tensor_parallel < 1) {
    return Bad(model,
               absl::StrCat("tensor parallelism is ", tensor_parallel, "; it must be at least 1"));
  }
  const char* lower = "use a tensor parallelism that divides it";
  OPTIMUS_RETURN_IF_ERROR(
      CheckDivides(model, "hidden_size", model.hidden_size(), tensor_parallel, lower));
  OPTIMUS_RETURN_IF_ERROR(CheckDivides(model, "num_attention_heads", model.num_attention_heads(),
                                       tensor_parallel, lower));
  OPTIMUS_RETURN_IF_ERROR(
      CheckDivides(model, "ffn_hidden_size", model.ffn_hidden_size(), tensor_parallel, lower));
  const std::int64_t groups = QueryGroups(model);
  if (groups % tensor_parallel != 0 && tensor_parallel % groups != 0) {
    return Bad(model, absl::StrCat("num_query_groups ", groups, " and tensor parallelism ",
                                   tensor_parallel,
                                   " do not divide each other; key/value heads can "
                                   "be split or replicated only where they do"));
  }
  const std::int64_t padded =
      (model.vocabulary_size() + tensor_parallel - 1) / tensor_parallel * tensor_parallel;
  return CheckDivides(model, "vocabulary_size", model.vocabulary_size(), tensor_parallel,
                      absl::StrCat("pad it, for example to ", padded).c_str());
}

absl::Status ValidateShape(const ModelConfig& model, const LayerShape& shape) {
  OPTIMUS_RETURN_IF_ERROR(ValidateModel(model, shape.tensor_parallel));
  if (shape.sequences < 1 || shape.sequence_length < 1) {
    return Bad(model, absl::StrCat("micro-batch of ", shape.sequences, " sequences of ",
                                   shape.sequence_length, " tokens; both must be at least 1"));
  }
  if (shape.sequence_parallel && shape.sequence_length % shape.tensor_parallel != 0) {
    return Bad(model,
               absl::StrCat("sequence_length ", shape.sequence_length,
                            " is not a multiple of tensor parallelism ", shape.tensor_parallel,
                            "; sequence parallelism splits it: pad it or turn that off"));
  }
  if (LargestTensor(model, shape) > kMaxElements) {
    return Bad(model, absl::StrCat("micro-batch of ", shape.sequences, " sequences of ",
                                   shape.sequence_length, " tokens is too large"));
  }
  return absl::OkStatus();
}

}  // namespace optimus::models
