#include <cstddef>
#include <utility>

#include "validation/compare_timelines.h"

namespace optimus::validation {

std::vector<RankedPair> CompareRanking(const std::vector<NamedSteps>& steps,
                                       double least_difference) {
  std::vector<RankedPair> pairs;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (std::size_t j = i + 1; j < steps.size(); ++j) {
      const bool first = steps[i].measured_s <= steps[j].measured_s;
      const NamedSteps& faster = first ? steps[i] : steps[j];
      const NamedSteps& slower = first ? steps[j] : steps[i];
      if (!(slower.measured_s - faster.measured_s > least_difference * faster.measured_s)) continue;
      pairs.push_back({.faster = faster.name,
                       .slower = slower.name,
                       .measured_ratio = slower.measured_s / faster.measured_s,
                       .simulated_ratio = slower.simulated_s / faster.simulated_s,
                       .same = slower.simulated_s > faster.simulated_s});
    }
  }
  return pairs;
}

}  // namespace optimus::validation
