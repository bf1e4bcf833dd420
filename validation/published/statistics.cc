#include "validation/published/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace optimus::validation {
namespace {

int Sign(double value) { return (value > 0) - (value < 0); }

}  // namespace

ErrorSummary Summarize(std::vector<double> errors) {
  ErrorSummary summary;
  summary.figures = static_cast<int>(errors.size());
  if (errors.empty()) return summary;
  summary.highest = *std::max_element(errors.begin(), errors.end());
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  summary.largest = errors.back();
  summary.mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  const std::size_t middle = errors.size() / 2;
  summary.median =
      errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  return summary;
}

std::optional<double> KendallTauB(const std::vector<Ranked>& values) {
  std::int64_t agreement = 0, differ_measured = 0, differ_simulated = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      if (values[i].kind != values[j].kind) continue;
      const int measured = Sign(values[i].measured - values[j].measured);
      const int simulated = Sign(values[i].simulated - values[j].simulated);
      agreement += std::int64_t{measured} * simulated;
      differ_measured += std::int64_t{measured != 0};
      differ_simulated += std::int64_t{simulated != 0};
    }
  }
  if (differ_measured == 0) return std::nullopt;
  if (differ_simulated == 0) return 0;
  return static_cast<double>(agreement) /
         std::sqrt(static_cast<double>(differ_measured) * static_cast<double>(differ_simulated));
}

}  // namespace optimus::validation
