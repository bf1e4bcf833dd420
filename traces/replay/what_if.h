#pragma once
// What would be if: durations of a rebuilt trace under changed conditions.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "traces/replay/classes.h"
#include "traces/replay/graph.h"
#include "traces/replay/replay.h"

namespace optimus::traces {

struct WhatIf {
  double compute_scale = 1;  // of the duration of every kernel; above 0
  std::vector<std::pair<std::int32_t, double>> stragglers;  // (global rank, factor on its kernels)
  // Communication that takes no time; who waits for whom stays. A role ("dp"), a kind
  // ("all_reduce"), a class ("dp all_reduce"), or "all".
  std::vector<std::string> drop;
  // Prices before and after a change of links; both or none. A recorded communication of known
  // kind, size and group lasts its recorded time times after / before.
  const CostModel* before = nullptr;
  const CostModel* after = nullptr;
};

// Communication whose recorded time was kept though links changed.
struct KeptTime {
  std::string what;  // "all_reduce of unknown size"
  std::int64_t count = 0;
  Picoseconds time;
};

struct WhatIfDurations {
  Durations durations;
  std::vector<KeptTime> kept;
  std::int64_t communications = 0, changed = 0;  // where links changed: how many there are, did
};

// `base` changed: RecordedDurations, or of a graph without times PriceUntimed (then by the prices
// `after` already, so links are not looked at). INVALID_ARGUMENT naming a rank that was not
// recorded, or a selector that fits nothing with those that would.
absl::StatusOr<WhatIfDurations> Apply(const ReplayGraph& graph, const OpClasses& classes,
                                      const WhatIf& what_if, Durations base);

// Durations of a graph without times, by `costs`. Operations that have a duration keep it.
// INVALID_ARGUMENT naming the first operation whose kind, size or group is not known, with a hint.
absl::StatusOr<Durations> PriceUntimed(const ReplayGraph& graph, const CostModel& costs);

// Durations in which operations of one class last no time; lags stay.
Durations WithoutClass(const ReplayGraph& graph, const OpClasses& classes, std::int32_t cls,
                       Durations durations);
// In which there are no lags: of calls of the host, or of all else.
Durations WithoutLags(const ReplayGraph& graph, bool of_host, Durations durations);

}  // namespace optimus::traces
