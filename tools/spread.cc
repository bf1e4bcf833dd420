#include "tools/spread.h"

#include "base/quantile.h"

namespace optimus::tools {

Spread SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto at = [&](double share) { return Quantile(values, share); };
  return {at(0), at(0.25), at(0.5), at(0.75), at(1)};
}

std::vector<double> InSeconds(const std::vector<Picoseconds>& times) {
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const Picoseconds time : times) seconds.push_back(ToSeconds(time));
  return seconds;
}

}  // namespace optimus::tools
