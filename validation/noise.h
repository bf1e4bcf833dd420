#pragma once
// How much a shared machine's times scatter, without assuming that they are normally distributed:
// a few very slow runs are the rule. Printed beside every error that is measured.

#include <cstddef>

#include "absl/types/span.h"

namespace optimus::validation {

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
