#pragma once
// A recorded step, rebuilt: what the reports of replay and explain have in common.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/trace_files.h"
#include "tools/what_if_flags.h"
#include "traces/replay/classes.h"
#include "traces/replay/graph.h"
#include "traces/replay/replay.h"

namespace optimus::tools {

struct TracedStep {
  std::string version;
  std::vector<std::string> files;     // in the order of their ranks
  std::string profile, profile_hash;  // empty: none was given
  std::optional<std::int64_t> step;   // number of the profiler's step
  std::int32_t rank = -1;             // global: whose times are asked for; -1: of all
  std::int32_t rank_index = -1;       // its index in the recording
  traces::ReplayGraph graph;
  traces::OpClasses classes;
};

// `recording` rebuilt; `name`: what errors call it. `rank`: global, or -1. INVALID_ARGUMENT naming
// the trace, or the ranks that are there.
absl::StatusOr<TracedStep> RebuildStep(const std::string& name, traces::Recording recording,
                                       const ParsedWhatIf& what_if, std::int32_t rank);

// As recorded; of a trace without times by `costs`, INVALID_ARGUMENT where that is null.
absl::StatusOr<traces::Durations> BaseDurations(const traces::ReplayGraph& graph,
                                                const CostModel* costs);

}  // namespace optimus::tools
