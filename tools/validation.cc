#include "tools/validation.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

const ValidatedExperiment* Validation::Worst() const {
  const auto size = [](const ValidatedExperiment& e) {
    const double error = std::abs(e.comparison.step_error);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  };
  const auto worst =
      std::max_element(experiments.begin(), experiments.end(),
                       [&](const auto& a, const auto& b) { return size(a) < size(b); });
  return worst == experiments.end() ? nullptr : &*worst;
}

bool Validation::drowns_in_noise() const {
  return noise.samples > 0 && noise.time.relative() > tolerance;
}

bool Validation::late() const {
  return std::any_of(experiments.begin(), experiments.end(),
                     [](const auto& e) { return e.emulation && !e.emulation->kept_time(); });
}

bool Validation::conclusive() const { return !drowns_in_noise() && !late(); }

bool Validation::within() const {
  return std::all_of(experiments.begin(), experiments.end(),
                     [&](const auto& e) { return Within(e.comparison, tolerance); }) &&
         std::all_of(ranking.begin(), ranking.end(), [](const auto& pair) { return pair.same; });
}

}  // namespace optimus::tools
