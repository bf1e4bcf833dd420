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

std::vector<double> InSeconds(const std::vector<Picoseconds>& times);

}  // namespace optimus::tools
