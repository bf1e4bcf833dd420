#pragma once
// What `optimus explain` found: why a step took as long as it did.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/what_if_flags.h"
#include "traces/replay/classes.h"
#include "traces/replay/gaps.h"
#include "traces/replay/graph.h"
#include "traces/replay/path.h"
#include "traces/replay/replay.h"
#include "traces/replay/sensitivity.h"

namespace optimus::tools {

// Pieces of the critical path that follow each other on one rank.
struct Stretch {
  std::int32_t rank = 0;                             // global
  traces::BoundBy reason = traces::BoundBy::kStart;  // of its first piece
  Picoseconds from, to;
  std::int64_t operations = 0;
  traces::TaskId first = traces::kNoTask, last = traces::kNoTask;
  std::vector<traces::Share> shares;  // of its time by class
};

struct ExplainReport {
  std::string version;
  std::vector<std::string> files;
  std::string profile, profile_hash;  // empty: none was given
  std::int32_t rank = -1;             // whose gaps; -1: of all ranks
  std::optional<std::int64_t> step;
  traces::ReplayGraph graph;
  traces::OpClasses classes;
  traces::Run run;
  std::vector<Stretch> path;               // the critical path, in time order
  std::vector<traces::Share> path_shares;  // of it, by rank and class
  std::vector<traces::IdleGap> gaps;       // the longest
  std::vector<std::vector<traces::Share>> gap_shares;
  std::vector<traces::Sensitivity> sensitivities;
};

// `rank`: global, or -1. `top`: how many gaps. INVALID_ARGUMENT.
absl::StatusOr<ExplainReport> MakeExplainReport(traces::ReplayGraph graph,
                                                const ParsedWhatIf& prices, std::int32_t rank,
                                                std::size_t top);

}  // namespace optimus::tools
