#pragma once
// What each operation of a file comes after: ids of nodes resolved, also through nodes that are no
// operations.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "traces/chakra/draft.h"
#include "traces/recording/recording.h"

namespace optimus::traces::chakra {

struct Edge {
  std::uint32_t op = 0;  // index into Draft::ops: the earlier one
  bool control = false;  // by a ctrl_dep somewhere on the way, and by no way of data_deps alone
};

struct Edges {
  std::vector<std::size_t> first;  // of operation i: edges[first[i] .. first[i + 1])
  std::vector<Edge> edges;
  absl::Span<const Edge> Of(std::size_t op) const {
    return absl::MakeConstSpan(edges).subspan(first[op], first[op + 1] - first[op]);
  }
};

// Each earlier operation once, in the order of the file. Ids that no node has and dependencies of
// an operation on itself are left out, with a note. A cycle through nodes that are no operations is
// harmless; one of operations stays. INVALID_ARGUMENT where dependencies through such nodes are so
// many that following them would take for ever.
absl::StatusOr<Edges> ResolveEdges(const Draft& draft, bool control_dependencies, std::int32_t rank,
                                   const Recording& recording, RecordingTables& tables);

// Whether operations wait for each other in a circle that is none of data dependencies alone.
bool ControlGoesRound(const Edges& edges);

// The data dependencies of `edges`.
Edges WithoutControl(const Edges& edges);

}  // namespace optimus::traces::chakra
