#pragma once
// Median, quartiles and ends of repeated measurements.

#include <vector>

#include "base/units.h"

namespace optimus::tools {

struct Spread {
  double least = 0, first_quartile = 0, median = 0, third_quartile = 0, greatest = 0;
  // Between the quartiles, relative to the median; 0 where that is 0.
  double relative() const { return median > 0 ? (third_quartile - first_quartile) / median : 0; }
};

// Quantiles as in base/quantile.h. Zero of nothing.
Spread SpreadOf(const std::vector<double>& values);

// Of measured steps: the median is one of them, of an even number the lower of the two in the
// middle, so that it is the step whose figures are shown (executor::MedianStep). The first quartile
// is never above it.
Spread SpreadOfSteps(const std::vector<double>& steps);

std::vector<double> InSeconds(const std::vector<Picoseconds>& times);

}  // namespace optimus::tools
