#include "executor/numerics/linear.h"

namespace optimus::executor::numerics {

std::int64_t LinearParts::outputs() const {
  std::int64_t sum = 0;
  for (const Parameter* weight : weights) sum += weight->holding.rows;
  return sum;
}

LinearParts LinearOf(const Context& context, const std::string& name) {
  return {context.parameters.PartsOf(name + " weight"), context.parameters.PartsOf(name + " bias")};
}

Floats ApplyLinear(const LinearParts& linear, const Floats& x, bool with_bias) {
  const std::int64_t in = linear.inputs();
  const std::int64_t out = linear.outputs();
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / in;
  Floats y(rows * out, 0.0F);
  std::int64_t first = 0;
  for (std::size_t part = 0; part < linear.weights.size(); ++part) {
    const Parameter& weight = *linear.weights[part];
    const std::int64_t outputs = weight.holding.rows;
    AddProductTransposedB(rows, outputs, in, {x.data(), in}, {weight.value.data(), in},
                          {&y[first], out});
    for (std::int64_t r = 0; r < rows && with_bias && !linear.biases.empty(); ++r) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        y[r * out + first + o] += linear.biases[part]->value[o];
      }
    }
    first += outputs;
  }
  return y;
}

Floats LinearDataGradient(const LinearParts& linear, const Floats& dy) {
  const std::int64_t in = linear.inputs();
  const std::int64_t out = linear.outputs();
  const std::int64_t rows = static_cast<std::int64_t>(dy.size()) / out;
  Floats dx(rows * in, 0.0F);
  std::int64_t first = 0;
  for (const Parameter* weight : linear.weights) {
    AddProduct(rows, in, weight->holding.rows, {&dy[first], out}, {weight->value.data(), in},
               {dx.data(), in});
    first += weight->holding.rows;
  }
  return dx;
}

void AddLinearGradients(const LinearParts& linear, const Floats& x, const Floats& dy) {
  const std::int64_t in = linear.inputs();
  const std::int64_t out = linear.outputs();
  const std::int64_t rows = static_cast<std::int64_t>(dy.size()) / out;
  std::int64_t first = 0;
  for (Parameter* weight : linear.weights) {
    AddProductTransposedA(weight->holding.rows, in, rows, {&dy[first], out}, {x.data(), in},
                          {weight->gradient.data(), in});
    first += weight->holding.rows;
  }
  first = 0;
  for (Parameter* bias : linear.biases) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < bias->holding.columns; ++o) {
        bias->gradient[o] += dy[r * out + first + o];
      }
    }
    first += bias->holding.columns;
  }
}

NormParts NormOf(const Context& context, const std::string& name) {
  const std::vector<Parameter*> bias = context.parameters.PartsOf(name + " bias");
  return {context.parameters.PartsOf(name + " weight").front(),
          bias.empty() ? nullptr : bias.front()};
}

Floats ApplyNorm(const NormParts& norm, const Floats& x) {
  return Normalise(x, norm.width(), norm.weight->value.data(),
                   norm.bias == nullptr ? nullptr : norm.bias->value.data());
}

Floats ApplyNormBackward(const NormParts& norm, const Floats& x, const Floats& dy) {
  return NormaliseBackward(x, dy, norm.width(), norm.weight->value.data(),
                           norm.weight->gradient.data(),
                           norm.bias == nullptr ? nullptr : norm.bias->gradient.data());
}

void Append(std::vector<Parameter*>& to, const std::vector<Parameter*>& parts) {
  to.insert(to.end(), parts.begin(), parts.end());
}
void Append(std::vector<Parameter*>& to, const NormParts& norm) {
  to.push_back(norm.weight);
  if (norm.bias != nullptr) to.push_back(norm.bias);
}

}  // namespace optimus::executor::numerics
