#pragma once
// What the run by a Schedule and the reference have in common, and nothing else: the model's
// tensors with their first values, and the data. Every value is a function of the seed, a name and
// an index, so that every rank makes its own part without asking anyone.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/numerics/numerics.h"
#include "models/model.pb.h"

namespace optimus::executor::numerics {

// A ModelConfig with its defaults filled in.
struct Dims {
  std::string name;  // unique within the NumericsModel
  std::int64_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  std::int64_t vocabulary = 0, positions = 0;  // 0: none
  bool swiglu = false, causal = false, bias = false, rms_norm = false, tied = false;
  std::int64_t fc1_width() const { return swiglu ? 2 * ffn : ffn; }
  std::int64_t attention_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return attention_width() + 2 * kv_width(); }
};
// By module: the LLM, then the encoders.
std::vector<Dims> DimsOf(const NumericsModel& model);

// A parameter tensor, [rows, columns] row-major. Linear layers: rows are outputs, columns inputs,
// y = x W^T + b; qkv has the rows of queries, keys and values one after the other (head by head),
// SwiGLU's fc1 those of the gate and of the other half. Vectors: one row.
struct TensorShape {
  std::string name;
  std::int64_t rows = 0, columns = 0;
  bool trained = true;
  double mean = 0, spread = 0;  // first values: uniform in mean +- spread
  std::int64_t elements() const { return rows * columns; }
};
// All tensors, the frozen ones too. Tied: the head uses EmbeddingWeight.
std::vector<TensorShape> TensorsOf(const NumericsModel& model);

std::string LayerTensor(const Dims& module, std::int64_t layer, const std::string& what);
std::string ModuleTensor(const Dims& module, const std::string& what);

// First value of element `index` (row-major) of a tensor.
float FirstValue(std::uint64_t seed, const TensorShape& tensor, std::int64_t index);

// Token `position` of a sample, 0 <= position <= sequence_length: the last one is a target only.
std::int64_t TokenOf(const NumericsModel& model, std::int64_t sample, std::int64_t position);
// Channel of a patch that encoder `k` sees.
float PatchOf(const NumericsModel& model, int k, std::int64_t sample, std::int64_t sequence,
              std::int64_t position, std::int64_t channel);

// Behind the projector, token e (of all sequences of the sample, one after the other) of encoder k
// is added to the embedding of one of the first tokens of the sample: token e where there are
// enough of them, else neighbours are averaged.
struct Pooling {
  std::int64_t position = 0;
  double weight = 1;
};
Pooling PoolingOf(const NumericsModel& model, int k, std::int64_t token);

inline constexpr double kNormEpsilon = 1e-5;

}  // namespace optimus::executor::numerics
