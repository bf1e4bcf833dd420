#pragma once
// What `optimus explain` found: why a step took as long as it did.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/traced_step.h"
#include "tools/what_if_flags.h"
#include "traces/replay/gaps.h"
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

// Gaps are those of all ranks, or of TracedStep::rank.
struct ExplainReport {
  TracedStep traced;
  traces::Run run;
  std::vector<Stretch> path;               // the critical path, in time order
  std::vector<traces::Share> path_shares;  // of it, by rank and class
  std::vector<traces::IdleGap> gaps;       // the longest
  std::vector<std::vector<traces::Share>> gap_shares;
  std::vector<traces::Sensitivity> sensitivities;
};

// `top`: how many gaps. INVALID_ARGUMENT.
absl::StatusOr<ExplainReport> MakeExplainReport(TracedStep traced, const ParsedWhatIf& prices,
                                                std::size_t top);

}  // namespace optimus::tools
