#include "executor/numerics/reference_layer.h"

#include <cmath>
#include <limits>

#include "executor/numerics/reference.h"

namespace optimus::executor::numerics {
namespace {

double Gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double GeluDerivative(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * density;
}
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Rows Add(const Rows& a, const Rows& b) {
  Rows sum = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) sum[i][j] += b[i][j];
  }
  return sum;
}

Rows Activate(const Dims& dims, const Rows& f1) {
  const auto ffn = static_cast<std::size_t>(dims.ffn);
  Rows act = Zeros(f1.size(), ffn);
  for (std::size_t i = 0; i < f1.size(); ++i) {
    for (std::size_t j = 0; j < ffn; ++j) {
      const double g = f1[i][j];
      act[i][j] = dims.swiglu ? g * Sigmoid(g) * f1[i][ffn + j] : Gelu(g);
    }
  }
  return act;
}

Rows ActivateBackward(const Dims& dims, const Rows& f1, const Rows& dact) {
  const auto ffn = static_cast<std::size_t>(dims.ffn);
  Rows df1 = Zeros(f1.size(), f1[0].size());
  for (std::size_t i = 0; i < f1.size(); ++i) {
    for (std::size_t j = 0; j < ffn; ++j) {
      const double g = f1[i][j];
      if (!dims.swiglu) {
        df1[i][j] = dact[i][j] * GeluDerivative(g);
        continue;
      }
      const double s = Sigmoid(g);
      df1[i][j] = dact[i][j] * f1[i][ffn + j] * (s + g * s * (1 - s));
      df1[i][ffn + j] = dact[i][j] * g * s;
    }
  }
  return df1;
}

// Column offsets of one head in a row of qkv.
struct Head {
  std::int64_t q = 0, k = 0, v = 0, out = 0;
};
Head HeadAt(const Dims& dims, std::int64_t head) {
  const std::int64_t group = head / (dims.heads / dims.kv_heads);
  const std::int64_t d = dims.head_dim;
  return {head * d, dims.attention_width() + group * d,
          dims.attention_width() + dims.kv_width() + group * d, head * d};
}

// Softmax of one query's scores over all keys that it may see.
std::vector<double> Probabilities(const Dims& dims, const Rows& qkv, const Head& head,
                                  std::size_t query) {
  const std::size_t keys = dims.causal ? query + 1 : qkv.size();
  std::vector<double> p(keys);
  double sum = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    double score = 0;
    for (std::int64_t c = 0; c < dims.head_dim; ++c) {
      score += qkv[query][head.q + c] * qkv[j][head.k + c];
    }
    p[j] = std::exp(score / std::sqrt(static_cast<double>(dims.head_dim)));
    sum += p[j];
  }
  for (double& value : p) value /= sum;
  return p;
}

Rows Attention(const Dims& dims, const Rows& qkv) {
  Rows out = Zeros(qkv.size(), dims.attention_width());
  for (std::int64_t h = 0; h < dims.heads; ++h) {
    const Head head = HeadAt(dims, h);
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const std::vector<double> p = Probabilities(dims, qkv, head, i);
      for (std::size_t j = 0; j < p.size(); ++j) {
        for (std::int64_t c = 0; c < dims.head_dim; ++c) {
          out[i][head.out + c] += p[j] * qkv[j][head.v + c];
        }
      }
    }
  }
  return out;
}

Rows AttentionBackward(const Dims& dims, const Rows& qkv, const Rows& dout) {
  Rows dqkv = Zeros(qkv.size(), qkv[0].size());
  const double scale = 1 / std::sqrt(static_cast<double>(dims.head_dim));
  for (std::int64_t h = 0; h < dims.heads; ++h) {
    const Head head = HeadAt(dims, h);
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const std::vector<double> p = Probabilities(dims, qkv, head, i);
      std::vector<double> dp(p.size(), 0);
      double mean = 0;
      for (std::size_t j = 0; j < p.size(); ++j) {
        for (std::int64_t c = 0; c < dims.head_dim; ++c) {
          dp[j] += dout[i][head.out + c] * qkv[j][head.v + c];
          dqkv[j][head.v + c] += p[j] * dout[i][head.out + c];
        }
        mean += p[j] * dp[j];
      }
      for (std::size_t j = 0; j < p.size(); ++j) {
        const double ds = p[j] * (dp[j] - mean) * scale;
        for (std::int64_t c = 0; c < dims.head_dim; ++c) {
          dqkv[i][head.q + c] += ds * qkv[j][head.k + c];
          dqkv[j][head.k + c] += ds * qkv[i][head.q + c];
        }
      }
    }
  }
  return dqkv;
}

}  // namespace

Rows Zeros(std::size_t rows, std::size_t columns) {
  return Rows(rows, std::vector<double>(columns, 0.0));
}

Rows LinearForward(const Rows& x, const ReferenceTensor& weight, const ReferenceTensor* bias) {
  const auto in = static_cast<std::size_t>(weight.shape.columns);
  Rows y = Zeros(x.size(), weight.shape.rows);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t o = 0; o < y[i].size(); ++o) {
      for (std::size_t c = 0; c < in; ++c) y[i][o] += x[i][c] * weight.value[o * in + c];
      if (bias != nullptr) y[i][o] += bias->value[o];
    }
  }
  return y;
}

Rows LinearBackward(const Rows& x, const Rows& dy, ReferenceTensor& weight, ReferenceTensor* bias) {
  const auto in = static_cast<std::size_t>(weight.shape.columns);
  Rows dx = Zeros(x.size(), in);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t o = 0; o < dy[i].size(); ++o) {
      for (std::size_t c = 0; c < in; ++c) {
        dx[i][c] += dy[i][o] * weight.value[o * in + c];
        weight.gradient[o * in + c] += dy[i][o] * x[i][c];
      }
      if (bias != nullptr) bias->gradient[o] += dy[i][o];
    }
  }
  return dx;
}

namespace {

struct Moments {
  double mean = 0, inverse = 0;
};
Moments MomentsOf(const std::vector<double>& x, bool layer_norm) {
  const auto n = static_cast<double>(x.size());
  Moments moments;
  if (layer_norm) {
    for (const double value : x) moments.mean += value / n;
  }
  double variance = 0;
  for (const double value : x) variance += (value - moments.mean) * (value - moments.mean) / n;
  moments.inverse = 1 / std::sqrt(variance + kNormEpsilon);
  return moments;
}

}  // namespace

Rows NormForward(const Rows& x, const ReferenceTensor& weight, const ReferenceTensor* bias) {
  Rows y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Moments moments = MomentsOf(x[i], bias != nullptr);
    for (std::size_t j = 0; j < x[i].size(); ++j) {
      y[i][j] = (x[i][j] - moments.mean) * moments.inverse * weight.value[j];
      if (bias != nullptr) y[i][j] += bias->value[j];
    }
  }
  return y;
}

Rows NormBackward(const Rows& x, const Rows& dy, ReferenceTensor& weight, ReferenceTensor* bias) {
  Rows dx = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Moments moments = MomentsOf(x[i], bias != nullptr);
    const auto n = static_cast<double>(x[i].size());
    double mean_g = 0;   // of the gradient of the normalised value
    double mean_gx = 0;  // of that times the normalised value
    for (std::size_t j = 0; j < x[i].size(); ++j) {
      const double normal = (x[i][j] - moments.mean) * moments.inverse;
      const double g = dy[i][j] * weight.value[j];
      mean_g += g / n;
      mean_gx += g * normal / n;
      weight.gradient[j] += dy[i][j] * normal;
      if (bias != nullptr) bias->gradient[j] += dy[i][j];
    }
    if (bias == nullptr) mean_g = 0;  // RMS norm subtracts no mean
    for (std::size_t j = 0; j < x[i].size(); ++j) {
      const double normal = (x[i][j] - moments.mean) * moments.inverse;
      dx[i][j] = moments.inverse * (dy[i][j] * weight.value[j] - mean_g - normal * mean_gx);
    }
  }
  return dx;
}

Rows ReferenceLayerForward(const Dims& dims, const LayerTensors& tensors, const Rows& x,
                           LayerTrace& trace) {
  trace.x = x;
  trace.n1 = NormForward(x, *tensors.norm1, tensors.norm1_bias);
  trace.qkv = LinearForward(trace.n1, *tensors.qkv, tensors.qkv_bias);
  trace.heads = Attention(dims, trace.qkv);
  trace.mid = Add(x, LinearForward(trace.heads, *tensors.proj, tensors.proj_bias));
  trace.n2 = NormForward(trace.mid, *tensors.norm2, tensors.norm2_bias);
  trace.f1 = LinearForward(trace.n2, *tensors.fc1, tensors.fc1_bias);
  trace.act = Activate(dims, trace.f1);
  return Add(trace.mid, LinearForward(trace.act, *tensors.fc2, tensors.fc2_bias));
}

Rows ReferenceLayerBackward(const Dims& dims, const LayerTensors& tensors, const LayerTrace& trace,
                            const Rows& dy) {
  const Rows dact = LinearBackward(trace.act, dy, *tensors.fc2, tensors.fc2_bias);
  const Rows df1 = ActivateBackward(dims, trace.f1, dact);
  const Rows dn2 = LinearBackward(trace.n2, df1, *tensors.fc1, tensors.fc1_bias);
  const Rows dmid = Add(dy, NormBackward(trace.mid, dn2, *tensors.norm2, tensors.norm2_bias));
  const Rows dheads = LinearBackward(trace.heads, dmid, *tensors.proj, tensors.proj_bias);
  const Rows dqkv = AttentionBackward(dims, trace.qkv, dheads);
  const Rows dn1 = LinearBackward(trace.n1, dqkv, *tensors.qkv, tensors.qkv_bias);
  return Add(dmid, NormBackward(trace.x, dn1, *tensors.norm1, tensors.norm1_bias));
}

}  // namespace optimus::executor::numerics
