#pragma once
// What `optimus replay` found: the step as it was recorded, as it runs again, and what would be if.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/what_if_flags.h"
#include "traces/replay/account.h"
#include "traces/replay/classes.h"
#include "traces/replay/graph.h"
#include "traces/replay/replay.h"

namespace optimus::tools {

// One column: a run and where its time went, mean over GPUs or of one rank.
struct ReplayColumn {
  traces::Run run;
  traces::TimeAccount times;
};

struct ReplayReport {
  std::string version;
  std::vector<std::string> files;
  std::string profile, profile_hash;  // empty: none was given
  std::int32_t rank = -1;             // whose times; -1: the mean over GPUs
  std::optional<std::int64_t> step;   // number of the profiler's step
  traces::ReplayGraph graph;
  traces::OpClasses classes;
  std::optional<ReplayColumn> recorded;  // absent: the trace has no times
  ReplayColumn replayed;
  std::optional<ReplayColumn> what_if;
  std::vector<std::string> cautions;   // what the what-if cannot know
  std::vector<std::string> changes;    // of the what-if
  std::vector<traces::KeptTime> kept;  // that the what-if should have changed, and could not
};

// Runs `graph` again, and as `what_if` says. `rank`: global, or -1. INVALID_ARGUMENT.
absl::StatusOr<ReplayReport> MakeReplayReport(traces::ReplayGraph graph,
                                              const ParsedWhatIf& what_if, std::int32_t rank);

// As recorded; of a trace without times by `costs`, INVALID_ARGUMENT where that is null.
absl::StatusOr<traces::Durations> BaseDurations(const traces::ReplayGraph& graph,
                                                const CostModel* costs);

// Index of a recorded rank; INVALID_ARGUMENT naming those that are there. -1 stays -1.
absl::StatusOr<std::int32_t> RankIndex(const traces::Recording& recording, std::int32_t rank);

}  // namespace optimus::tools
