#include "validation/noise.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace optimus::validation {
namespace {

constexpr double kConfidence = 0.95;

std::vector<double> Sorted(absl::Span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Probability that exactly k of n values are below the median. By logarithms: 2^n overflows.
double BelowMedian(std::size_t k, std::size_t n) {
  const auto log_factorial = [](std::size_t i) { return std::lgamma(static_cast<double>(i) + 1); };
  return std::exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) -
                  static_cast<double>(n) * std::log(2.0));
}

}  // namespace

// The interval from the i-th smallest to the i-th largest misses the median where fewer than i
// values lie on one side of it.
MedianInterval MedianIntervalOf(absl::Span<const double> values) {
  const std::vector<double> sorted = Sorted(values);
  const std::size_t n = sorted.size();
  std::size_t inside = 0;  // values left out at each end
  double missed = 2 * BelowMedian(0, n);
  while (2 * (inside + 2) <= n) {
    const double more = missed + 2 * BelowMedian(inside + 1, n);
    if (more > 1 - kConfidence) break;
    missed = more;
    ++inside;
  }
  return {sorted[inside], sorted[n - 1 - inside], n == 1 ? 0 : 1 - missed};
}

}  // namespace optimus::validation
