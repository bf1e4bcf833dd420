#pragma once
// The reference: trains the model of NumericsModel sample by sample in plain loops, in one process
// and in double precision. It knows neither schedules nor micro-batches nor parallelism.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/numerics/numerics.h"
#include "executor/numerics/tensors.h"

namespace optimus::executor::numerics {

struct ReferenceTensor {
  TensorShape shape;
  std::vector<double> value, gradient;
};

class Reference {
 public:
  // `without_input[k]`: the samples that hold nothing for encoder k, by sample.
  Reference(const NumericsModel& model, std::vector<std::vector<bool>> without_input);

  // Loss of the global batch with the present values; replaces all gradients.
  double Step();
  // Plain SGD.
  void Update();
  // Loss alone (finite differences).
  double Loss();

  std::map<std::string, ReferenceTensor>& tensors() { return tensors_; }
  const std::map<std::string, ReferenceTensor>& tensors() const { return tensors_; }

 private:
  double Sample(std::int64_t sample, bool with_gradients);

  NumericsModel model_;
  std::vector<Dims> modules_;
  std::vector<std::vector<bool>> without_input_;
  std::map<std::string, ReferenceTensor> tensors_;
};

}  // namespace optimus::executor::numerics
