#include "tools/validation.h"

#include <algorithm>
#include <cmath>

namespace optimus::tools {

bool Within(const validation::Comparison& comparison, double tolerance) {
  return std::abs(comparison.step_error) <= tolerance;
}

double Validation::MedianError() const {
  std::vector<double> errors;
  for (const ValidatedExperiment& e : experiments) {
    errors.push_back(std::abs(e.comparison.step_error));
  }
  return SpreadOf(errors).median;
}

bool Validation::within() const {
  return std::all_of(experiments.begin(), experiments.end(),
                     [&](const auto& e) { return Within(e.comparison, tolerance); }) &&
         std::all_of(ranking.begin(), ranking.end(), [](const auto& pair) { return pair.same; });
}

}  // namespace optimus::tools
