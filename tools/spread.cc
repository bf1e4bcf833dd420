#include "tools/spread.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace optimus::tools {
namespace {

double Quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), Quantile(values, 0.25), Quantile(values, 0.5), Quantile(values, 0.75),
          values.back()};
}

std::vector<double> InSeconds(const std::vector<Picoseconds>& times) {
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const Picoseconds time : times) seconds.push_back(ToSeconds(time));
  return seconds;
}

}  // namespace optimus::tools
