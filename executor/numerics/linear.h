#pragma once
// Linear layers and norms on the parts of their tensors that a rank holds.

#include <string>
#include <vector>

#include "executor/numerics/holdings.h"
#include "executor/numerics/math.h"
#include "executor/numerics/task.h"

namespace optimus::executor::numerics {

// Parts of a weight by row, of its bias by column: outputs lie one behind the other in that order.
struct LinearParts {
  std::vector<Parameter*> weights, biases;
  std::int64_t inputs() const { return weights.front()->holding.columns; }
  std::int64_t outputs() const;
};
LinearParts LinearOf(const Context& context, const std::string& name);

// x [rows, inputs] to [rows, outputs]. Row-parallel layers add their bias behind the reduction.
Floats ApplyLinear(const LinearParts& linear, const Floats& x, bool with_bias);
Floats LinearDataGradient(const LinearParts& linear, const Floats& dy);
void AddLinearGradients(const LinearParts& linear, const Floats& x, const Floats& dy);

struct NormParts {
  Parameter* weight = nullptr;
  Parameter* bias = nullptr;  // null: RMS norm
  std::int64_t width() const { return weight->holding.columns; }
};
NormParts NormOf(const Context& context, const std::string& name);
Floats ApplyNorm(const NormParts& norm, const Floats& x);
Floats ApplyNormBackward(const NormParts& norm, const Floats& x, const Floats& dy);

// For Task::reads and Task::adds_to.
void Append(std::vector<Parameter*>& to, const std::vector<Parameter*>& parts);
void Append(std::vector<Parameter*>& to, const NormParts& norm);

}  // namespace optimus::executor::numerics
