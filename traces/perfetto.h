#pragma once
// Timeline to a Perfetto protobuf trace (ui.perfetto.dev): one process per pipeline stage (and
// lane, where a stage has several), one track per stream, slices named by work, phase, layer and
// micro-batch ("fc1 fwd L3 mb5"), with module, phase, layer, chunk, micro-batch, slice and FLOPs or
// bytes as arguments. Under the compute track lies a track "bubbles": every idle interval, named by
// its cause, with the operation that was awaited (schedule/ir/bubbles.h).
//
// Perfetto counts whole nanoseconds. Starts and ends are rounded to the nearest one, each by
// itself, so order is kept, nothing is negative, slices that touch still touch, and no error adds
// up; a duration is off by at most 1 ns. Slices shorter than 1 us also carry their exact length in
// an argument duration_ps.

#include <string>

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::traces {

// The serialized trace. FAILED_PRECONDITION if the timeline has no spans; INVALID_ARGUMENT, naming
// rank and operation, if the spans of a rank are not exactly one for each operation of its program,
// or two of one stream overlap.
absl::StatusOr<std::string> ToPerfetto(const ir::Schedule& schedule, const ir::Timeline& timeline);

}  // namespace optimus::traces
