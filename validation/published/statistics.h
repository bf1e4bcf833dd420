#pragma once
// How far a list of simulated values is from the measured ones.

#include <optional>
#include <string>
#include <vector>

namespace optimus::validation {

struct ErrorSummary {
  int figures = 0;
  // Of the absolute errors; absent without figures.
  std::optional<double> mean, median, largest;
  // The largest error with its sign: below 0 where every simulated value is too small.
  std::optional<double> highest;
};
ErrorSummary Summarize(std::vector<double> errors);

// One value and its measurement; only pairs of one `kind` are compared.
struct Ranked {
  std::string kind;
  double measured = 0, simulated = 0;
};

// Kendall's tau-b over all pairs of one kind (M. G. Kendall, "Rank Correlation Methods", 1948):
// (agreeing - disagreeing) / sqrt((pairs - ties in measured) * (pairs - ties in simulated)).
// 1: the same order, -1: the reverse. Absent where no two measured values differ: there is no
// order. 0 where they do and no two simulated ones: tau-b is 0 / 0 then, but an order was missed.
std::optional<double> KendallTauB(const std::vector<Ranked>& values);

}  // namespace optimus::validation
