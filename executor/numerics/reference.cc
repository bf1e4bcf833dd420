#include "executor/numerics/reference.h"

#include <cmath>
#include <utility>

#include "executor/numerics/reference_layer.h"

namespace optimus::executor::numerics {
namespace {

// One sample on its way through the model.
class SamplePass {
 public:
  SamplePass(const NumericsModel& model, const std::vector<Dims>& modules,
             std::map<std::string, ReferenceTensor>& tensors, std::int64_t sample)
      : model_(model), modules_(modules), tensors_(tensors), sample_(sample) {}

  double Forward(const std::vector<std::vector<bool>>& without_input) {
    Embed();
    for (int k = 0; k < static_cast<int>(model_.encoders.size()); ++k) {
      const bool absent = without_input[k][sample_];
      encoders_.emplace_back();
      if (!absent) EncoderForward(k);
    }
    Rows x = embedded_;
    llm_ = LayersForward(0, x);
    before_head_ = x;
    normal_ = NormForward(x, *Find(ModuleTensor(llm(), "final_norm weight")),
                          Find(ModuleTensor(llm(), "final_norm bias")));
    logits_ = LinearForward(normal_, Head(), nullptr);
    return Loss();
  }

  void Backward() {
    const Rows dnormal = LinearBackward(normal_, LogitGradients(), Head(), nullptr);
    Rows dx = NormBackward(before_head_, dnormal, *Find(ModuleTensor(llm(), "final_norm weight")),
                           Find(ModuleTensor(llm(), "final_norm bias")));
    LayersBackward(0, llm_, dx);
    for (std::size_t k = 0; k < encoders_.size(); ++k) {
      if (!encoders_[k].empty()) EncoderBackward(static_cast<int>(k), dx);
    }
    EmbedBackward(dx);
  }

 private:
  struct Sequence {
    std::vector<LayerTrace> layers;
    Rows output;  // the projector's input
  };

  const Dims& llm() const { return modules_[0]; }
  std::int64_t tokens() const { return model_.sequence_length; }
  double PerToken() const { return 1.0 / static_cast<double>(model_.global_batch * tokens()); }

  ReferenceTensor* Find(const std::string& name) {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  ReferenceTensor& Head() {
    return *Find(ModuleTensor(llm(), llm().tied ? "embedding weight" : "lm_head weight"));
  }
  LayerTensors TensorsOfLayer(int module, std::int64_t layer) {
    const auto find = [&](const char* what) {
      return Find(LayerTensor(modules_[module], layer, what));
    };
    return {find("norm1 weight"), find("norm1 bias"), find("qkv weight"),   find("qkv bias"),
            find("proj weight"),  find("proj bias"),  find("norm2 weight"), find("norm2 bias"),
            find("fc1 weight"),   find("fc1 bias"),   find("fc2 weight"),   find("fc2 bias")};
  }

  std::vector<LayerTrace> LayersForward(int module, Rows& x) {
    std::vector<LayerTrace> traces(modules_[module].layers);
    for (std::size_t layer = 0; layer < traces.size(); ++layer) {
      x = ReferenceLayerForward(modules_[module],
                                TensorsOfLayer(module, static_cast<std::int64_t>(layer)), x,
                                traces[layer]);
    }
    return traces;
  }
  void LayersBackward(int module, const std::vector<LayerTrace>& traces, Rows& dx) {
    for (std::size_t layer = traces.size(); layer > 0; --layer) {
      dx = ReferenceLayerBackward(modules_[module],
                                  TensorsOfLayer(module, static_cast<std::int64_t>(layer) - 1),
                                  traces[layer - 1], dx);
    }
  }

  void Embed() {
    const ReferenceTensor& table = *Find(ModuleTensor(llm(), "embedding weight"));
    const ReferenceTensor* positions = Find(ModuleTensor(llm(), "positions"));
    embedded_ = Zeros(tokens(), llm().hidden);
    for (std::int64_t p = 0; p < tokens(); ++p) {
      const std::int64_t token = TokenOf(model_, sample_, p);
      for (std::int64_t c = 0; c < llm().hidden; ++c) {
        embedded_[p][c] = table.value[token * llm().hidden + c];
        if (positions != nullptr) embedded_[p][c] += positions->value[p * llm().hidden + c];
      }
    }
  }

  void EmbedBackward(const Rows& dx) {
    ReferenceTensor& table = *Find(ModuleTensor(llm(), "embedding weight"));
    ReferenceTensor* positions = Find(ModuleTensor(llm(), "positions"));
    for (std::int64_t p = 0; p < tokens(); ++p) {
      const std::int64_t token = TokenOf(model_, sample_, p);
      for (std::int64_t c = 0; c < llm().hidden; ++c) {
        table.gradient[token * llm().hidden + c] += dx[p][c];
        if (positions != nullptr) positions->gradient[p * llm().hidden + c] += dx[p][c];
      }
    }
  }

  void EncoderForward(int k) {
    const NumericsEncoder& encoder = model_.encoders[k];
    const Dims& dims = modules_[k + 1];
    for (std::int64_t i = 0; i < encoder.sequences_per_sample; ++i) {
      Rows x = Zeros(encoder.sequence_length, dims.hidden);
      for (std::int64_t p = 0; p < encoder.sequence_length; ++p) {
        for (std::int64_t c = 0; c < dims.hidden; ++c) {
          x[p][c] = PatchOf(model_, k, sample_, i, p, c);
        }
      }
      Sequence sequence;
      sequence.layers = LayersForward(k + 1, x);
      sequence.output = x;
      const Rows projected = LinearForward(x, *Find(ModuleTensor(dims, "projector weight")),
                                           Find(ModuleTensor(dims, "projector bias")));
      for (std::int64_t p = 0; p < encoder.sequence_length; ++p) {
        const Pooling pooling = PoolingOf(model_, k, i * encoder.sequence_length + p);
        for (std::int64_t c = 0; c < llm().hidden; ++c) {
          embedded_[pooling.position][c] += pooling.weight * projected[p][c];
        }
      }
      encoders_[k].push_back(std::move(sequence));
    }
  }

  void EncoderBackward(int k, const Rows& dembedded) {
    const NumericsEncoder& encoder = model_.encoders[k];
    const Dims& dims = modules_[k + 1];
    for (std::int64_t i = 0; i < encoder.sequences_per_sample; ++i) {
      Rows dprojected = Zeros(encoder.sequence_length, llm().hidden);
      for (std::int64_t p = 0; p < encoder.sequence_length; ++p) {
        const Pooling pooling = PoolingOf(model_, k, i * encoder.sequence_length + p);
        for (std::int64_t c = 0; c < llm().hidden; ++c) {
          dprojected[p][c] = pooling.weight * dembedded[pooling.position][c];
        }
      }
      const Sequence& sequence = encoders_[k][i];
      Rows dx =
          LinearBackward(sequence.output, dprojected, *Find(ModuleTensor(dims, "projector weight")),
                         Find(ModuleTensor(dims, "projector bias")));
      if (!encoder.frozen) LayersBackward(k + 1, sequence.layers, dx);
    }
  }

  // Cross-entropy of the next token, this sample's share of the mean over the global batch.
  double Loss() {
    double loss = 0;
    log_sums_.resize(tokens());
    for (std::int64_t p = 0; p < tokens(); ++p) {
      double sum = 0;
      for (const double logit : logits_[p]) sum += std::exp(logit);
      log_sums_[p] = std::log(sum);
      loss += (log_sums_[p] - logits_[p][TokenOf(model_, sample_, p + 1)]) * PerToken();
    }
    return loss;
  }

  Rows LogitGradients() {
    Rows gradients = logits_;
    for (std::int64_t p = 0; p < tokens(); ++p) {
      for (double& g : gradients[p]) g = std::exp(g - log_sums_[p]) * PerToken();
      gradients[p][TokenOf(model_, sample_, p + 1)] -= PerToken();
    }
    return gradients;
  }

  const NumericsModel& model_;
  const std::vector<Dims>& modules_;
  std::map<std::string, ReferenceTensor>& tensors_;
  std::int64_t sample_;
  Rows embedded_, before_head_, normal_, logits_;
  std::vector<LayerTrace> llm_;
  std::vector<std::vector<Sequence>> encoders_;
  std::vector<double> log_sums_;
};

}  // namespace

Reference::Reference(const NumericsModel& model, std::vector<std::vector<bool>> without_input)
    : model_(model), modules_(DimsOf(model)), without_input_(std::move(without_input)) {
  for (const TensorShape& shape : TensorsOf(model)) {
    ReferenceTensor tensor{shape, {}, {}};
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      tensor.value.push_back(FirstValue(model.seed, shape, i));
    }
    tensor.gradient.assign(tensor.value.size(), 0);
    tensors_.emplace(shape.name, std::move(tensor));
  }
}

double Reference::Sample(std::int64_t sample, bool with_gradients) {
  SamplePass pass(model_, modules_, tensors_, sample);
  const double loss = pass.Forward(without_input_);
  if (with_gradients) pass.Backward();
  return loss;
}

double Reference::Step() {
  for (auto& [name, tensor] : tensors_) tensor.gradient.assign(tensor.value.size(), 0);
  double loss = 0;
  for (std::int64_t g = 0; g < model_.global_batch; ++g) loss += Sample(g, true);
  return loss;
}

double Reference::Loss() {
  double loss = 0;
  for (std::int64_t g = 0; g < model_.global_batch; ++g) loss += Sample(g, false);
  return loss;
}

void Reference::Update() {
  for (auto& [name, tensor] : tensors_) {
    if (!tensor.shape.trained) continue;
    for (std::size_t i = 0; i < tensor.value.size(); ++i) {
      tensor.value[i] -= model_.learning_rate * tensor.gradient[i];
    }
  }
}

}  // namespace optimus::executor::numerics
