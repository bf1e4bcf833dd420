#include "executor/numerics/tensors.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"

namespace optimus::executor::numerics {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014): the same on every machine.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::uint64_t HashOf(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Uniform in [-1, 1).
double Uniform(std::uint64_t hash) {
  return static_cast<double>(hash >> 11) * (2.0 / 9007199254740992.0) - 1.0;
}

Dims DimsOf(const models::ModelConfig& config, std::string name) {
  Dims dims;
  dims.name = std::move(name);
  dims.hidden = config.hidden_size();
  dims.layers = config.num_layers();
  dims.heads = config.num_attention_heads();
  dims.kv_heads = config.num_query_groups() > 0 ? config.num_query_groups() : dims.heads;
  dims.head_dim = config.head_dim() > 0 ? config.head_dim()
                                        : dims.hidden / std::max<std::int64_t>(dims.heads, 1);
  dims.ffn = config.ffn_hidden_size();
  dims.vocabulary = config.vocabulary_size();
  dims.positions = config.vocabulary_size() > 0 ? config.max_position_embeddings() : 0;
  dims.swiglu = config.activation() == models::ModelConfig::SWIGLU;
  dims.causal = config.attention() == models::ModelConfig::CAUSAL;
  dims.bias = config.linear_bias();
  dims.rms_norm = config.norm() == models::ModelConfig::RMS_NORM;
  dims.tied = config.tied_embeddings();
  return dims;
}

class Lister {
 public:
  explicit Lister(std::vector<TensorShape>& out) : out_(out) {}
  void SetTrained(bool trained) { trained_ = trained; }

  // Such a spread that outputs are about as large as inputs.
  void Linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    Add(name + " weight", out, in, 0, 1 / std::sqrt(static_cast<double>(in)));
    if (bias) Add(name + " bias", 1, out, 0, 0.1);
  }
  void Norm(const std::string& name, const Dims& dims) {
    Add(name + " weight", 1, dims.hidden, 1, 0.2);
    if (!dims.rms_norm) Add(name + " bias", 1, dims.hidden, 0, 0.1);
  }
  void Add(std::string name, std::int64_t rows, std::int64_t columns, double mean, double spread) {
    out_.push_back({std::move(name), rows, columns, trained_, mean, spread});
  }

 private:
  std::vector<TensorShape>& out_;
  bool trained_ = true;
};

void ListLayer(const Dims& dims, std::int64_t layer, Lister& lister) {
  const auto name = [&](const char* what) { return LayerTensor(dims, layer, what); };
  lister.Norm(name("norm1"), dims);
  lister.Linear(name("qkv"), dims.qkv_width(), dims.hidden, dims.bias);
  lister.Linear(name("proj"), dims.hidden, dims.attention_width(), dims.bias);
  lister.Norm(name("norm2"), dims);
  lister.Linear(name("fc1"), dims.fc1_width(), dims.hidden, dims.bias);
  lister.Linear(name("fc2"), dims.hidden, dims.ffn, dims.bias);
}

}  // namespace

std::vector<Dims> DimsOf(const NumericsModel& model) {
  std::vector<Dims> dims = {DimsOf(model.llm, "llm")};
  std::set<std::string> names = {"llm"};
  for (std::size_t k = 0; k < model.encoders.size(); ++k) {
    std::string name = model.encoders[k].model.name();
    if (name.empty() || !names.insert(name).second) {
      name = absl::StrCat(name.empty() ? "encoder" : name, " (encoder ", k, ")");
      names.insert(name);
    }
    dims.push_back(DimsOf(model.encoders[k].model, std::move(name)));
  }
  return dims;
}

std::string LayerTensor(const Dims& module, std::int64_t layer, const std::string& what) {
  return absl::StrCat(module.name, " layer ", layer, " ", what);
}
std::string ModuleTensor(const Dims& module, const std::string& what) {
  return absl::StrCat(module.name, " ", what);
}

std::vector<TensorShape> TensorsOf(const NumericsModel& model) {
  const std::vector<Dims> modules = DimsOf(model);
  std::vector<TensorShape> tensors;
  Lister lister(tensors);
  for (std::size_t m = 1; m < modules.size(); ++m) {
    const Dims& dims = modules[m];
    lister.SetTrained(!model.encoders[m - 1].frozen);
    for (std::int64_t layer = 0; layer < dims.layers; ++layer) ListLayer(dims, layer, lister);
    lister.SetTrained(true);
    lister.Linear(ModuleTensor(dims, "projector"), modules[0].hidden, dims.hidden, dims.bias);
  }
  const Dims& llm = modules[0];
  lister.Add(ModuleTensor(llm, "embedding weight"), llm.vocabulary, llm.hidden, 0, 0.5);
  if (llm.positions > 0) {
    lister.Add(ModuleTensor(llm, "positions"), llm.positions, llm.hidden, 0, 0.5);
  }
  for (std::int64_t layer = 0; layer < llm.layers; ++layer) ListLayer(llm, layer, lister);
  lister.Norm(ModuleTensor(llm, "final_norm"), llm);
  if (!llm.tied) {
    lister.Linear(ModuleTensor(llm, "lm_head"), llm.vocabulary, llm.hidden, /*bias=*/false);
  }
  return tensors;
}

float FirstValue(std::uint64_t seed, const TensorShape& tensor, std::int64_t index) {
  const std::uint64_t name = Mix(seed ^ HashOf(tensor.name));
  const double unit = Uniform(Mix(name + static_cast<std::uint64_t>(index)));
  return static_cast<float>(tensor.mean + tensor.spread * unit);
}

std::int64_t TokenOf(const NumericsModel& model, std::int64_t sample, std::int64_t position) {
  const std::uint64_t key =
      Mix(Mix(model.seed ^ HashOf("tokens")) + static_cast<std::uint64_t>(sample));
  return static_cast<std::int64_t>(Mix(key + static_cast<std::uint64_t>(position)) %
                                   static_cast<std::uint64_t>(model.llm.vocabulary_size()));
}

float PatchOf(const NumericsModel& model, int k, std::int64_t sample, std::int64_t sequence,
              std::int64_t position, std::int64_t channel) {
  std::uint64_t key = Mix(model.seed ^ HashOf("patches")) + static_cast<std::uint64_t>(k);
  for (const std::int64_t part : {sample, sequence, position, channel}) {
    key = Mix(key) + static_cast<std::uint64_t>(part);
  }
  return static_cast<float>(Uniform(Mix(key)));
}

Pooling PoolingOf(const NumericsModel& model, int k, std::int64_t token) {
  const NumericsEncoder& encoder = model.encoders[k];
  const std::int64_t all = encoder.sequences_per_sample * encoder.sequence_length;
  const std::int64_t places = std::min(all, model.sequence_length);
  return {token * places / all, static_cast<double>(places) / static_cast<double>(all)};
}

}  // namespace optimus::executor::numerics
