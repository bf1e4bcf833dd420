#include "traces/replay/sensitivity.h"

#include <algorithm>

#include "traces/replay/what_if.h"

namespace optimus::traces {

std::vector<Sensitivity> Sensitivities(const ReplayGraph& graph, const OpClasses& classes,
                                       const Durations& durations) {
  std::vector<bool> used(classes.names.size(), false);
  for (const std::int32_t cls : classes.of_task) used[static_cast<std::size_t>(cls)] = true;
  std::vector<Sensitivity> all;
  for (std::size_t cls = 0; cls < used.size(); ++cls) {
    if (!used[cls]) continue;
    const auto id = static_cast<std::int32_t>(cls);
    all.push_back(
        {classes.names[cls], id, Replay(graph, WithoutClass(graph, classes, id, durations)).step});
  }
  for (const bool of_host : {true, false}) {
    Durations without = WithoutLags(graph, of_host, durations);
    if (without.lag == durations.lag) continue;
    all.push_back({of_host ? "host between calls" : "launch gaps and what the trace does not say",
                   -1, Replay(graph, without).step});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.step < b.step; });
  return all;
}

}  // namespace optimus::traces
