#pragma once
// Who waits for whom in a step, as far as the file says: launches by correlation id, waits of
// streams for events, synchronisations of the host, threads that hand over to each other.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "traces/kineto/step_events.h"
#include "traces/recording/recording.h"

namespace optimus::traces {

// A call or an operation: calls are numbered first.
using Node = std::uint32_t;

struct Edge {
  Node node = 0;   // has to wait
  Node after = 0;  // for this one
  DependencyKind kind = DependencyKind::kAfter;
};

// What the file leaves open, with the first node that shows it.
struct Gap {
  const char* what;
  const char* effect;
  Node node;
};

struct StepGraph {
  std::vector<bool> keep_call;  // it launched an operation of the step, or synchronises
  std::vector<Edge> edges;
  std::vector<Gap> gaps;  // one a node
};

// INVALID_ARGUMENT where device-wide synchronisations times streams are more than any run has.
absl::StatusOr<StepGraph> BuildStepGraph(const StepEvents& events);

// Of the calls that are kept: the one that ended last before a call began, where it is on another
// thread and ended later than the previous one of its own.
std::vector<Edge> HandOvers(const std::vector<FileCall>& calls, const std::vector<bool>& keep);

}  // namespace optimus::traces
