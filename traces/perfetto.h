#pragma once
// Timeline to a Perfetto protobuf trace (ui.perfetto.dev): one process per pipeline stage, one
// track per stream, spans named by module, layer, micro-batch and phase.

#include <string>

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::traces {

// The serialized trace; FAILED_PRECONDITION if the timeline has no spans.
absl::StatusOr<std::string> ToPerfetto(const ir::Schedule& schedule, const ir::Timeline& timeline);

}  // namespace optimus::traces
