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

double QuantileOfSorted(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

// Probability that exactly k of n values are below the median. By logarithms: 2^n overflows.
double BelowMedian(std::size_t k, std::size_t n) {
  const auto log_factorial = [](std::size_t i) { return std::lgamma(static_cast<double>(i) + 1); };
  return std::exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) -
                  static_cast<double>(n) * std::log(2.0));
}

}  // namespace

double Median(absl::Span<const double> values) { return Quantile(values, 0.5); }

double Quantile(absl::Span<const double> values, double share) {
  return QuantileOfSorted(Sorted(values), share);
}

Quartiles QuartilesOf(absl::Span<const double> values) {
  const std::vector<double> sorted = Sorted(values);
  return {QuantileOfSorted(sorted, 0.25), QuantileOfSorted(sorted, 0.5),
          QuantileOfSorted(sorted, 0.75)};
}

Spread SpreadOf(absl::Span<const double> values) {
  const std::vector<double> sorted = Sorted(values);
  const Quartiles quartiles = QuartilesOf(sorted);
  Spread spread;
  spread.count = sorted.size();
  spread.median = quartiles.median;
  if (spread.median == 0) return spread;
  std::vector<double> deviations;
  deviations.reserve(sorted.size());
  for (const double value : sorted) deviations.push_back(std::abs(value - spread.median));
  const double unit = std::abs(spread.median);
  spread.median_deviation = Median(deviations) / unit;
  spread.quartile_range = (quartiles.upper - quartiles.lower) / unit;
  spread.full_range = (sorted.back() - sorted.front()) / unit;
  return spread;
}

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
