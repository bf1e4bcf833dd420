#include "base/quantile.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace optimus {

double Median(absl::Span<const double> values) { return Quantile(values, 0.5); }

double Quantile(absl::Span<const double> values, double share) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

}  // namespace optimus
