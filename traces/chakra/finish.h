#pragma once
// A Recording of the nodes of one file, when all are read.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "traces/chakra/draft.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

struct FinishOptions {
  std::int32_t rank = 0;
  std::int32_t world = 0;  // 0: not known
  bool control_dependencies = true;
  const GroupTable* groups = nullptr;  // of the groups file; nullptr: none
};

// Adds the rank, its lanes, operations and groups to `recording`, which has the names already.
// INVALID_ARGUMENT as ResolveEdges and WorkOutTimes, or where a size overflows.
absl::Status Finish(const Draft& draft, const FinishOptions& options, const std::string& source,
                    Recording& recording, RecordingTables& tables);

}  // namespace optimus::traces::chakra
