#include "executor/numerics/math.h"

#include <algorithm>
#include <cmath>

namespace optimus::executor::numerics {

void AddProduct(std::int64_t m, std::int64_t n, std::int64_t k, ConstMatrix a, ConstMatrix b,
                Matrix c) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) {
      const float factor = a.data[i * a.stride + l];
      for (std::int64_t j = 0; j < n; ++j) {
        c.data[i * c.stride + j] += factor * b.data[l * b.stride + j];
      }
    }
  }
}

void AddProductTransposedB(std::int64_t m, std::int64_t n, std::int64_t k, ConstMatrix a,
                           ConstMatrix b, Matrix c) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a.data[i * a.stride + l] * b.data[j * b.stride + l];
      }
      c.data[i * c.stride + j] += sum;
    }
  }
}

void AddProductTransposedA(std::int64_t m, std::int64_t n, std::int64_t k, ConstMatrix a,
                           ConstMatrix b, Matrix c) {
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::int64_t i = 0; i < m; ++i) {
      const float factor = a.data[l * a.stride + i];
      for (std::int64_t j = 0; j < n; ++j) {
        c.data[i * c.stride + j] += factor * b.data[l * b.stride + j];
      }
    }
  }
}

void AddTo(Floats& sum, const Floats& other) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
}

namespace {

constexpr float kEpsilon = 1e-5F;

struct Moments {
  float mean = 0, inverse = 0;
};
Moments MomentsOf(const float* x, std::int64_t width, bool layer_norm) {
  Moments moments;
  const auto n = static_cast<float>(width);
  if (layer_norm) {
    for (std::int64_t j = 0; j < width; ++j) moments.mean += x[j];
    moments.mean /= n;
  }
  float sum = 0;
  for (std::int64_t j = 0; j < width; ++j) sum += (x[j] - moments.mean) * (x[j] - moments.mean);
  moments.inverse = 1 / std::sqrt(sum / n + kEpsilon);
  return moments;
}

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

Floats Normalise(const Floats& x, std::int64_t width, const float* weight, const float* bias) {
  Floats y(x.size());
  for (std::size_t row = 0; row < x.size(); row += width) {
    const Moments moments = MomentsOf(&x[row], width, bias != nullptr);
    for (std::int64_t j = 0; j < width; ++j) {
      y[row + j] = (x[row + j] - moments.mean) * moments.inverse * weight[j] +
                   (bias == nullptr ? 0 : bias[j]);
    }
  }
  return y;
}

Floats NormaliseBackward(const Floats& x, const Floats& dy, std::int64_t width, const float* weight,
                         float* weight_gradient, float* bias_gradient) {
  Floats dx(x.size());
  const auto n = static_cast<float>(width);
  for (std::size_t row = 0; row < x.size(); row += width) {
    const Moments moments = MomentsOf(&x[row], width, bias_gradient != nullptr);
    float sum = 0;
    float sum_normal = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const float normal = (x[row + j] - moments.mean) * moments.inverse;
      const float g = dy[row + j] * weight[j];
      sum += g;
      sum_normal += g * normal;
      weight_gradient[j] += dy[row + j] * normal;
      if (bias_gradient != nullptr) bias_gradient[j] += dy[row + j];
    }
    if (bias_gradient == nullptr) sum = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const float normal = (x[row + j] - moments.mean) * moments.inverse;
      dx[row + j] = moments.inverse * (dy[row + j] * weight[j] - sum / n - normal * sum_normal / n);
    }
  }
  return dx;
}

Floats Activate(const Floats& x, std::int64_t width, bool swiglu) {
  const std::int64_t in = swiglu ? 2 * width : width;
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / in;
  Floats y(rows * width);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const float g = x[i * in + j];
      y[i * width + j] = swiglu ? g * Sigmoid(g) * x[i * in + width + j]
                                : 0.5F * g * (1 + std::erf(g * std::sqrt(0.5F)));
    }
  }
  return y;
}

Floats ActivateBackward(const Floats& x, const Floats& dy, std::int64_t width, bool swiglu) {
  const std::int64_t in = swiglu ? 2 * width : width;
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / in;
  constexpr float kInverseSqrtTwoPi = 0.3989422804F;
  Floats dx(x.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const float g = x[i * in + j];
      const float d = dy[i * width + j];
      if (swiglu) {
        const float s = Sigmoid(g);
        dx[i * in + j] = d * x[i * in + width + j] * s * (1 + g * (1 - s));
        dx[i * in + width + j] = d * g * s;
      } else {
        dx[i * in + j] = d * (0.5F * (1 + std::erf(g * std::sqrt(0.5F))) +
                              g * kInverseSqrtTwoPi * std::exp(-0.5F * g * g));
      }
    }
  }
  return dx;
}

namespace {

// One head of one sequence: its columns in qkv and in the output, and its score matrix.
struct HeadView {
  std::int64_t row_stride = 0, out_stride = 0;  // from position to position
  std::int64_t q = 0, k = 0, v = 0, out = 0, scores = 0;
};

HeadView ViewOf(const AttentionDims& dims, std::int64_t sequence, std::int64_t head) {
  HeadView view;
  const std::int64_t group = head / (dims.heads / dims.kv_heads);
  view.row_stride = dims.sequences * dims.width();
  view.out_stride = dims.sequences * dims.out_width();
  view.q = sequence * dims.width() + head * dims.head_dim;
  view.k = sequence * dims.width() + (dims.heads + group) * dims.head_dim;
  view.v = view.k + dims.kv_heads * dims.head_dim;
  view.out = sequence * dims.out_width() + head * dims.head_dim;
  view.scores = (sequence * dims.heads + head) * dims.length * dims.length;
  return view;
}

template <class Visit>
void ForEachHead(const AttentionDims& dims, Visit visit) {
  for (std::int64_t b = 0; b < dims.sequences; ++b) {
    for (std::int64_t h = 0; h < dims.heads; ++h) visit(ViewOf(dims, b, h));
  }
}

float Scale(const AttentionDims& dims) { return 1 / std::sqrt(static_cast<float>(dims.head_dim)); }

std::int64_t Keys(const AttentionDims& dims, std::int64_t query) {
  return dims.causal ? query + 1 : dims.length;
}

}  // namespace

Floats Scores(const AttentionDims& dims, const Floats& qkv) {
  Floats scores(dims.matrices() * dims.length * dims.length, 0.0F);
  ForEachHead(dims, [&](const HeadView& head) {
    AddProductTransposedB(dims.length, dims.length, dims.head_dim, {&qkv[head.q], head.row_stride},
                          {&qkv[head.k], head.row_stride}, {&scores[head.scores], dims.length});
  });
  return scores;
}

Floats Softmax(const AttentionDims& dims, const Floats& scores) {
  Floats p(scores.size(), 0.0F);
  const float scale = Scale(dims);
  for (std::int64_t row = 0; row < dims.matrices() * dims.length; ++row) {
    const float* in = &scores[row * dims.length];
    float* out = &p[row * dims.length];
    const std::int64_t keys = Keys(dims, row % dims.length);
    const float largest = *std::max_element(in, in + keys);
    float sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) sum += out[j] = std::exp(scale * (in[j] - largest));
    for (std::int64_t j = 0; j < keys; ++j) out[j] /= sum;
  }
  return p;
}

Floats WeightedValues(const AttentionDims& dims, const Floats& probabilities, const Floats& qkv) {
  Floats out(dims.sequences * dims.length * dims.out_width(), 0.0F);
  ForEachHead(dims, [&](const HeadView& head) {
    AddProduct(dims.length, dims.head_dim, dims.length, {&probabilities[head.scores], dims.length},
               {&qkv[head.v], head.row_stride}, {&out[head.out], head.out_stride});
  });
  return out;
}

Floats ProbabilityGradients(const AttentionDims& dims, const Floats& qkv, const Floats& dout) {
  Floats dp(dims.matrices() * dims.length * dims.length, 0.0F);
  ForEachHead(dims, [&](const HeadView& head) {
    AddProductTransposedB(dims.length, dims.length, dims.head_dim,
                          {&dout[head.out], head.out_stride}, {&qkv[head.v], head.row_stride},
                          {&dp[head.scores], dims.length});
  });
  return dp;
}

Floats SoftmaxBackward(const AttentionDims& dims, const Floats& probabilities,
                       const Floats& dprobabilities) {
  Floats ds(probabilities.size(), 0.0F);
  const float scale = Scale(dims);
  for (std::int64_t row = 0; row < dims.matrices() * dims.length; ++row) {
    const float* p = &probabilities[row * dims.length];
    const float* dp = &dprobabilities[row * dims.length];
    const std::int64_t keys = Keys(dims, row % dims.length);
    float mean = 0;
    for (std::int64_t j = 0; j < keys; ++j) mean += p[j] * dp[j];
    for (std::int64_t j = 0; j < keys; ++j) {
      ds[row * dims.length + j] = scale * p[j] * (dp[j] - mean);
    }
  }
  return ds;
}

void AddQueryGradients(const AttentionDims& dims, const Floats& qkv, const Floats& dscores,
                       Floats& dqkv) {
  ForEachHead(dims, [&](const HeadView& head) {
    AddProduct(dims.length, dims.head_dim, dims.length, {&dscores[head.scores], dims.length},
               {&qkv[head.k], head.row_stride}, {&dqkv[head.q], head.row_stride});
  });
}

void AddKeyGradients(const AttentionDims& dims, const Floats& qkv, const Floats& dscores,
                     Floats& dqkv) {
  ForEachHead(dims, [&](const HeadView& head) {
    AddProductTransposedA(dims.length, dims.head_dim, dims.length,
                          {&dscores[head.scores], dims.length}, {&qkv[head.q], head.row_stride},
                          {&dqkv[head.k], head.row_stride});
  });
}

void AddValueGradients(const AttentionDims& dims, const Floats& probabilities, const Floats& dout,
                       Floats& dqkv) {
  ForEachHead(dims, [&](const HeadView& head) {
    AddProductTransposedA(dims.length, dims.head_dim, dims.length,
                          {&probabilities[head.scores], dims.length},
                          {&dout[head.out], head.out_stride}, {&dqkv[head.v], head.row_stride});
  });
}

Floats Attention(const AttentionDims& dims, const Floats& qkv) {
  return WeightedValues(dims, Softmax(dims, Scores(dims, qkv)), qkv);
}

Floats AttentionBackward(const AttentionDims& dims, const Floats& qkv, const Floats& dout) {
  const Floats p = Softmax(dims, Scores(dims, qkv));
  const Floats ds = SoftmaxBackward(dims, p, ProbabilityGradients(dims, qkv, dout));
  Floats dqkv(qkv.size(), 0.0F);
  AddValueGradients(dims, p, dout, dqkv);
  AddQueryGradients(dims, qkv, ds, dqkv);
  AddKeyGradients(dims, qkv, ds, dqkv);
  return dqkv;
}

}  // namespace optimus::executor::numerics
