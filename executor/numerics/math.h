#pragma once
// Arithmetic of the run by a Schedule, f32, row-major. Written for clarity at small sizes; the
// reference has its own.

#include <cstdint>
#include <vector>

namespace optimus::executor::numerics {

using Floats = std::vector<float>;

// A matrix inside a larger one: rows are `stride` apart.
struct Matrix {
  float* data = nullptr;
  std::int64_t stride = 0;
};
struct ConstMatrix {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

// All add to C[m, n].
void AddProduct(std::int64_t m, std::int64_t n, std::int64_t k, ConstMatrix a, ConstMatrix b,
                Matrix c);  // A[m, k] B[k, n]
void AddProductTransposedB(std::int64_t m, std::int64_t n, std::int64_t k, ConstMatrix a,
                           ConstMatrix b, Matrix c);  // A[m, k] B[n, k]^T
void AddProductTransposedA(std::int64_t m, std::int64_t n, std::int64_t k, ConstMatrix a,
                           ConstMatrix b, Matrix c);  // A[k, m]^T B[k, n]

void AddTo(Floats& sum, const Floats& other);

// Layer norm, or RMS norm where `bias` is null. `x` is [rows, width].
Floats Normalise(const Floats& x, std::int64_t width, const float* weight, const float* bias);
// Gradient of x; gradients of weight and bias are added.
Floats NormaliseBackward(const Floats& x, const Floats& dy, std::int64_t width, const float* weight,
                         float* weight_gradient, float* bias_gradient);

// `width` outputs a row; SwiGLU's input rows are twice as wide.
Floats Activate(const Floats& x, std::int64_t width, bool swiglu);
Floats ActivateBackward(const Floats& x, const Floats& dy, std::int64_t width, bool swiglu);

// The attention core on one rank. Rows are tokens, position by position, the sequences side by side
// (Megatron's [s, b, h]): token of position s of sequence b is row s * sequences + b. A row of qkv
// has the queries of all heads, then the keys, then the values.
struct AttentionDims {
  std::int64_t sequences = 0, length = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = false;
  std::int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
  std::int64_t out_width() const { return heads * head_dim; }
  std::int64_t matrices() const { return sequences * heads; }  // score matrices, length x length
};
// Step by step. Scores and probabilities: [sequence, head, query, key].
Floats Scores(const AttentionDims& dims, const Floats& qkv);
Floats Softmax(const AttentionDims& dims, const Floats& scores);
Floats WeightedValues(const AttentionDims& dims, const Floats& probabilities, const Floats& qkv);
Floats ProbabilityGradients(const AttentionDims& dims, const Floats& qkv, const Floats& dout);
Floats SoftmaxBackward(const AttentionDims& dims, const Floats& probabilities,
                       const Floats& dprobabilities);
// Each adds its third of the columns of dqkv.
void AddQueryGradients(const AttentionDims& dims, const Floats& qkv, const Floats& dscores,
                       Floats& dqkv);
void AddKeyGradients(const AttentionDims& dims, const Floats& qkv, const Floats& dscores,
                     Floats& dqkv);
void AddValueGradients(const AttentionDims& dims, const Floats& probabilities, const Floats& dout,
                       Floats& dqkv);
// In one piece.
Floats Attention(const AttentionDims& dims, const Floats& qkv);
Floats AttentionBackward(const AttentionDims& dims, const Floats& qkv, const Floats& dout);

}  // namespace optimus::executor::numerics
