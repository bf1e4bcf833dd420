#pragma once
// Least squares on relative errors: a small kernel counts as much as a large one. Internal to
// hw_profiles.

#include "absl/types/span.h"

namespace optimus::hw {

// A measured time against what it should grow with, bytes or FLOPs. Any unit of time; `time` > 0.
struct Sample {
  double amount = 0;
  double time = 0;
  // The time cannot be less than this, whatever the slope (a GEMM's memory traffic).
  double floor = 0;
};

// The slope b >= 0 (time for one unit of amount) that makes max(b * amount, floor) + overhead come
// closest to `time`: the least sum of squares of (fitted / time - 1). The smallest of several. 0
// where nothing grows: no samples, no amounts, or all times are overhead or floor.
double FitSlope(absl::Span<const Sample> samples, double overhead);

// time = intercept + slope * amount, neither below 0; floors do not count. Where all amounts are
// the same, the two cannot be told apart, and all of the time is taken for slope.
struct Line {
  double intercept = 0;
  double slope = 0;
};
Line FitLine(absl::Span<const Sample> samples);
// The same where the slope is known.
double FitIntercept(absl::Span<const Sample> samples, double slope);

// The sum of squares that FitSlope and FitLine make small.
double SquaredRelativeErrors(absl::Span<const Sample> samples, Line line);

}  // namespace optimus::hw
