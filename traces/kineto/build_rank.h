#pragma once
// The last step of reading a Kineto file: a RecordedRank of what was collected.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "traces/kineto/step_events.h"
#include "traces/kineto/steps.h"
#include "traces/kineto/trace_header.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

struct RankFacts {
  std::int32_t rank = 0;
  std::string source;
  std::int64_t base_ns = 0;
  std::vector<FileStep> steps;
  ChosenStep chosen;
};

// Adds the rank with its steps and remarks to `recording`. INVALID_ARGUMENT where times do not fit.
absl::Status AddRank(const RankFacts& facts, StepEvents events, Recording& recording,
                     RecordingTables& tables);

// "rank-3", "rank3", "rank_3" or ".3." in a file's name.
std::optional<std::int32_t> RankOfFileName(absl::string_view path);

}  // namespace optimus::traces
