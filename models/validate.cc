#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/accounting.h"
#include "models/gpu_shape.h"

namespace optimus::models {
namespace {

// Far above any model. Each alone; what their products may reach is bounded below, in double, so
// that no count of parameters, bytes or picoseconds leaves 64 bits.
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;
constexpr std::int64_t kMaxFfn = std::int64_t{1} << 22;
constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;
constexpr std::int64_t kMaxLayers = 1 << 14;
constexpr double kMaxParameters = 1e15;  // of the whole model
constexpr double kMaxElements = 1e17;    // of one tensor of one micro-batch
// Of one kernel on one GPU. 1e19 FLOP keep an H100 busy for hours; a layer of 16384 x 65536 reaches
// it at 5 billion tokens.
constexpr double kMaxKernelFlops = 1e19;

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

// proto3 enums are open: a file may hold any number.
absl::Status CheckKind(const ModelConfig& model, const char* field, int value, bool known,
                       const char* allowed) {
  if (value == 0) return Bad(model, absl::StrCat(field, " is not set; use ", allowed));
  if (known) return absl::OkStatus();
  return Bad(model, absl::StrCat(field, ": unknown value ", value, "; use ", allowed));
}

absl::Status CheckKinds(const ModelConfig& model) {
  OPTIMUS_RETURN_IF_ERROR(CheckKind(model, "activation", model.activation(),
                                    ModelConfig::Activation_IsValid(model.activation()),
                                    "GELU or SWIGLU"));
  OPTIMUS_RETURN_IF_ERROR(CheckKind(model, "attention", model.attention(),
                                    ModelConfig::Attention_IsValid(model.attention()),
                                    "CAUSAL or FULL"));
  return CheckKind(model, "norm", model.norm(), ModelConfig::Norm_IsValid(model.norm()),
                   "LAYER_NORM or RMS_NORM");
}

// The count itself fits 64 bits for any fields in range.
absl::Status CheckParameters(const ModelConfig& model) {
  const auto parameters = static_cast<double>(CountParameters(model));
  if (parameters <= kMaxParameters) return absl::OkStatus();
  return Bad(model,
             absl::StrCat("hidden_size ", model.hidden_size(), ", ffn_hidden_size ",
                          model.ffn_hidden_size(), " and num_layers ", model.num_layers(), " make ",
                          parameters, " parameters; at most ", kMaxParameters, " are supported"));
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

// FLOPs of the largest kernel on one GPU: a GEMM, or the attention core's backward (2.5 forwards
// of 4 s^2 per head and channel).
double LargestKernelFlops(const ModelConfig& model, const LayerShape& shape) {
  const auto tokens =
      static_cast<double>(shape.sequences) * static_cast<double>(shape.sequence_length);
  const auto hidden = static_cast<double>(model.hidden_size());
  const auto attention_width = static_cast<double>(HeadDim(model) * model.num_attention_heads());
  const double widest = std::max({static_cast<double>(Fc1Width(model)), 3 * attention_width,
                                  static_cast<double>(model.vocabulary_size())});
  const double gemm = 2 * hidden * widest;
  const double core = 2.5 * 4 * attention_width * static_cast<double>(shape.sequence_length);
  return tokens * std::max(gemm, core) / shape.tensor_parallel;
}

}  // namespace

absl::Status ValidateModel(const ModelConfig& model, int tensor_parallel) {
  OPTIMUS_RETURN_IF_ERROR(CheckSizes(model));
  OPTIMUS_RETURN_IF_ERROR(CheckKinds(model));
  OPTIMUS_RETURN_IF_ERROR(CheckHeads(model));
  OPTIMUS_RETURN_IF_ERROR(CheckParameters(model));
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
    return Bad(
        model,
        absl::StrCat("sequence_length ", shape.sequence_length,
                     " is not a multiple of tensor parallelism ", shape.tensor_parallel,
                     "; sequence parallelism splits it: pad it or set plan.no_sequence_parallel"));
  }
  if (LargestTensor(model, shape) > kMaxElements) {
    return Bad(model, absl::StrCat("micro-batch of ", shape.sequences, " sequences of ",
                                   shape.sequence_length, " tokens is too large"));
  }
  if (const double flops = LargestKernelFlops(model, shape); flops > kMaxKernelFlops) {
    return Bad(model, absl::StrCat("micro-batch of ", shape.sequences, " sequences of ",
                                   shape.sequence_length, " tokens is too large: a kernel of ",
                                   flops, " FLOP; at most ", kMaxKernelFlops, " are supported"));
  }
  return absl::OkStatus();
}

}  // namespace optimus::models
