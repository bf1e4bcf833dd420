#pragma once
// What `optimus replay` found: the step as it was recorded, as it runs again, and what would be if.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/traced_step.h"
#include "tools/what_if_flags.h"
#include "traces/replay/account.h"
#include "traces/replay/replay.h"

namespace optimus::tools {

// One column: a run and where its time went, mean over GPUs or of one rank.
struct ReplayColumn {
  traces::Run run;
  traces::TimeAccount times;
};

// Times are the mean over GPUs, or of TracedStep::rank.
struct ReplayReport {
  TracedStep traced;
  std::optional<ReplayColumn> recorded;  // absent: the trace has no times
  ReplayColumn replayed;
  std::optional<ReplayColumn> what_if;
  std::vector<std::string> cautions;   // what the what-if cannot know
  std::vector<std::string> changes;    // of the what-if
  std::vector<traces::KeptTime> kept;  // that the what-if should have changed, and could not
};

// Runs the step again, and as `what_if` says. INVALID_ARGUMENT.
absl::StatusOr<ReplayReport> MakeReplayReport(TracedStep traced, const ParsedWhatIf& what_if);

}  // namespace optimus::tools
