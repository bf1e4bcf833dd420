#pragma once
// How close a data set must come, as a CSV file says it.

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace optimus::validation {

enum class Statistic {
  kMean,     // of the absolute errors; at most the limit
  kLargest,  // of the absolute errors; at most the limit
  kHighest,  // of the errors with their sign; at most the limit: smaller values are welcome
  kKendall,  // rank correlation; at least the limit
};
// "mean_abs_error", "max_abs_error", "max_error", "kendall_tau"
const char* ToString(Statistic statistic);

struct Target {
  std::string dataset;
  std::string quantity;  // of the figures; empty: all
  std::string group;     // empty: all; "each": every group by itself
  Statistic statistic = Statistic::kMean;
  double limit = 0;  // of errors a fraction
  std::string note;
};

// dataset,quantity,group,statistic,limit,note. INVALID_ARGUMENT "path:line: ...".
absl::StatusOr<std::vector<Target>> ReadTargets(const std::string& path);

}  // namespace optimus::validation
