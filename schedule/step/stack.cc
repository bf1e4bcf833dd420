#include "schedule/step/stack.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "models/accounting.h"
#include "models/zoo.h"

namespace optimus::step {
namespace {

constexpr int kBf16Bytes = 2;
// Tags hold layers in 16 bits.
constexpr int kMaxLayers = 30000;

absl::Status InField(const std::string& field, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(field, ": ", std::string(status.message())));
}

models::Recompute RecomputeOf(const Plan& plan) {
  switch (plan.recompute()) {
    case Plan::RECOMPUTE_SELECTIVE:
      return models::Recompute::kSelective;
    case Plan::RECOMPUTE_FULL:
      return models::Recompute::kFull;
    default:
      return models::Recompute::kNone;
  }
}

models::LayerShape ShapeFor(const Plan& plan, std::int64_t sequences, std::int64_t length) {
  models::LayerShape shape;
  shape.sequences = sequences;
  shape.sequence_length = length;
  shape.tensor_parallel = plan.tensor_parallel();
  shape.sequence_parallel = !plan.no_sequence_parallel();
  shape.recompute = RecomputeOf(plan);
  shape.attention = plan.unfused_attention() ? models::AttentionImplementation::kUnfused
                                             : models::AttentionImplementation::kFlash;
  shape.fused_elementwise = !plan.unfused_elementwise();
  shape.backward_overlap = !plan.no_backward_overlap();
  return shape;
}

absl::Status CheckModel(const models::ModelConfig& model, const std::string& field,
                        const Plan& plan) {
  if (absl::Status status = models::ValidateModel(model, plan.tensor_parallel()); !status.ok()) {
    return InField(field, status);
  }
  if (model.num_layers() <= kMaxLayers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": ", model.num_layers(), " layers; at most ", kMaxLayers, " are supported"));
}

absl::StatusOr<models::ModelConfig> LoadFor(const std::string& name, const std::string& field,
                                            const Plan& plan) {
  absl::StatusOr<models::ModelConfig> model = models::LoadModel(name);
  if (!model.ok()) return InField(field, model.status());
  OPTIMUS_RETURN_IF_ERROR(CheckModel(*model, field, plan));
  return model;
}

absl::Status CheckShapes(const std::string& field, const Module& module) {
  for (const models::LayerShape& shape : {module.slice, module.whole}) {
    if (absl::Status status = models::ValidateShape(module.config, shape); !status.ok()) {
      return InField(field, status);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Module> LlmModule(const Experiment& experiment) {
  Module module;
  module.name = "llm";
  OPTIMUS_ASSIGN_OR_RETURN(module.config, LoadLlm(experiment));
  if (module.config.vocabulary_size() <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("llm: \"", module.config.name(),
                                                   "\" has no vocabulary_size, so it is an "
                                                   "encoder; list it under encoders"));
  }
  module.whole = ShapeFor(experiment.plan(), experiment.batch().micro_batch(),
                          experiment.batch().sequence_length());
  module.slice = module.whole;
  OPTIMUS_RETURN_IF_ERROR(CheckShapes("batch.sequence_length", module));
  return module;
}

absl::StatusOr<Module> EncoderModule(const Experiment& experiment, int index) {
  const Encoder& encoder = experiment.encoders(index);
  const std::string field = absl::StrCat("encoders[", index, "]");
  Module module;
  OPTIMUS_ASSIGN_OR_RETURN(module.config,
                           LoadFor(encoder.model(), field + ".model", experiment.plan()));
  if (module.config.vocabulary_size() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(field, ".model: \"", encoder.model(),
                                                   "\" has a vocabulary, so it is a language "
                                                   "model; an encoder has none"));
  }
  module.name = module.config.name();
  module.frozen = encoder.frozen();
  const std::int64_t sequences =
      std::int64_t{experiment.batch().micro_batch()} * encoder.sequences_per_sample();
  module.whole = ShapeFor(experiment.plan(), sequences, encoder.sequence_length());
  module.slice =
      ShapeFor(experiment.plan(), encoder.sequences_per_slice(), encoder.sequence_length());
  module.slices = static_cast<int>(sequences / encoder.sequences_per_slice());
  OPTIMUS_RETURN_IF_ERROR(CheckShapes(field + ".sequence_length", module));
  return module;
}

void AppendLayers(int module, int layers, std::vector<Item>& items) {
  for (int layer = 0; layer < layers; ++layer) items.push_back({ItemKind::kLayer, module, layer});
}

std::string LayerRange(int first, int last) {
  return first == last ? absl::StrCat(first) : absl::StrCat(first, "-", last);
}

}  // namespace

absl::StatusOr<models::ModelConfig> LoadLlm(const Experiment& experiment) {
  if (!experiment.has_inline_llm()) return LoadFor(experiment.llm(), "llm", experiment.plan());
  const models::ModelConfig& model = experiment.inline_llm();
  if (model.name().empty()) {
    return absl::InvalidArgumentError("inline_llm.name: is empty; give the model a name");
  }
  OPTIMUS_RETURN_IF_ERROR(CheckModel(model, "inline_llm", experiment.plan()));
  return model;
}

absl::StatusOr<Stack> BuildStack(const Experiment& experiment) {
  Stack stack;
  OPTIMUS_ASSIGN_OR_RETURN(Module llm, LlmModule(experiment));
  stack.modules.push_back(std::move(llm));
  for (int k = 0; k < experiment.encoders_size(); ++k) {
    OPTIMUS_ASSIGN_OR_RETURN(Module encoder, EncoderModule(experiment, k));
    AppendLayers(k + 1, encoder.config.num_layers(), stack.items);
    stack.items.push_back({ItemKind::kProjector, k + 1, 0});
    stack.encoder_layers += encoder.config.num_layers();
    stack.modules.push_back(std::move(encoder));
  }
  stack.items.push_back({ItemKind::kEmbedding, 0, 0});
  AppendLayers(0, stack.modules[0].config.num_layers(), stack.items);
  stack.items.push_back({ItemKind::kHead, 0, 0});
  return stack;
}

bool IsTrained(const Stack& stack, const Item& item) {
  return item.kind != ItemKind::kLayer || !stack.modules[item.module].frozen;
}

std::string DescribeItems(const Stack& stack, int begin, int end) {
  std::vector<std::string> parts;
  for (int i = begin; i < end; ++i) {
    const Item& item = stack.items[i];
    if (item.kind == ItemKind::kProjector) {
      parts.push_back("projector");
    } else if (item.kind == ItemKind::kEmbedding) {
      parts.push_back("embedding");
    } else if (item.kind == ItemKind::kHead) {
      parts.push_back("head");
    } else {
      int last = i;
      while (last + 1 < end && stack.items[last + 1].kind == ItemKind::kLayer &&
             stack.items[last + 1].module == item.module) {
        ++last;
      }
      parts.push_back(absl::StrCat(stack.modules[item.module].name, " ",
                                   LayerRange(item.layer, stack.items[last].layer)));
      i = last;
    }
  }
  return absl::StrJoin(parts, ", ");
}

Bytes BoundaryBytes(const Stack& stack, const Item& item) {
  const bool inside_encoder = item.kind == ItemKind::kLayer && item.module > 0;
  const Module& module = stack.modules[inside_encoder ? item.module : 0];
  const std::int64_t tp = module.whole.tensor_parallel;
  const std::int64_t bytes = module.whole.tokens() * module.config.hidden_size() * kBf16Bytes;
  return Bytes((bytes + tp - 1) / tp);
}

}  // namespace optimus::step
