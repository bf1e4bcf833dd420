#include "tools/spread.h"

#include <algorithm>
#include <cstddef>

#include "base/quantile.h"

namespace optimus::tools {

Spread SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto at = [&](double share) { return Quantile(values, share); };
  return {at(0), at(0.25), at(0.5), at(0.75), at(1)};
}

Spread SpreadOfSteps(const std::vector<double>& steps) {
  if (steps.empty()) return {};
  Spread spread = SpreadOf(steps);
  std::vector<double> sorted = steps;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  spread.median = *middle;
  spread.first_quartile = std::min(spread.first_quartile, spread.median);
  return spread;
}

std::vector<double> InSeconds(const std::vector<Picoseconds>& times) {
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const Picoseconds time : times) seconds.push_back(ToSeconds(time));
  return seconds;
}

}  // namespace optimus::tools
