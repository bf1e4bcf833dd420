#pragma once
// How much a shared machine's times scatter, without assuming that they are normally distributed:
// a few very slow runs are the rule. Printed beside every error that is measured.

#include <cstddef>

#include "absl/types/span.h"

namespace optimus::validation {

// All of these need at least one value; the order of the values does not matter.

// The middle value; between the two middle ones for an even number.
double Median(absl::Span<const double> values);

// `share` from 0 (smallest) to 1 (largest): the value at place share * (n - 1) of the sorted ones,
// linear between neighbours (type 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages,
// The American Statistician 50, 1996; what R and NumPy do).
double Quantile(absl::Span<const double> values, double share);

struct Quartiles {
  double lower = 0, median = 0, upper = 0;
};
Quartiles QuartilesOf(absl::Span<const double> values);

// Of one piece of work that never changes (a reference kernel) over a whole run: what the machine
// itself does to times. Fractions of the median; 0 where the median is 0.
struct Spread {
  std::size_t count = 0;
  double median = 0;
  double median_deviation = 0;  // median of |value - median|
  double quartile_range = 0;    // upper quartile - lower quartile
  double full_range = 0;        // largest - smallest
};
Spread SpreadOf(absl::Span<const double> values);

// Between two order statistics, as far inside as they go while the median of the distribution lies
// between them with a probability of at least 95 %, whatever the distribution is (independent
// values). Fewer than 6 values cannot give 95 %: then smallest and largest, and `confidence` says
// how much that is worth.
struct MedianInterval {
  double low = 0, high = 0;
  double confidence = 0;  // at least this, from the binomial distribution: 0.97 for 6 values
};
MedianInterval MedianIntervalOf(absl::Span<const double> values);

}  // namespace optimus::validation
