#pragma once
// Quantiles of measured values. All need at least one value; the order of the values does not
// matter.

#include "absl/types/span.h"

namespace optimus {

// The middle value; between the two middle ones for an even number.
double Median(absl::Span<const double> values);

// `share` from 0 (smallest) to 1 (largest): the value at place share * (n - 1) of the sorted ones,
// linear between neighbours (type 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages,
// The American Statistician 50, 1996; what R and NumPy do).
double Quantile(absl::Span<const double> values, double share);

}  // namespace optimus
