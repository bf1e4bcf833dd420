#pragma once
// Times of the operations of one file, and an order that fits them and their dependencies.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "traces/chakra/draft.h"
#include "traces/chakra/edges.h"

namespace optimus::traces::chakra {

struct OpTime {
  Picoseconds start = kUntimed, end = kUntimed;
  // Where an untimed operation stands among the others: when it may start at the earliest, or when
  // the one before it in the file starts.
  Picoseconds key;
};

struct Times {
  std::vector<OpTime> ops;           // of Draft::ops
  std::vector<std::uint32_t> order;  // indices into Draft::ops, by key
  std::int64_t clock_origin_ns = 0;
  // Start times are the file's. False: they are the earliest that dependencies allow, or there are
  // none.
  bool recorded = false;
  // Some operation has a duration.
  bool timed = false;
};

// Whether some node says when it started.
bool HasStartTimes(const Draft& draft);

// INVALID_ARGUMENT "node N: ..." where a time does not fit into picoseconds (106 days).
absl::StatusOr<Times> WorkOutTimes(const Draft& draft, const Edges& edges);

}  // namespace optimus::traces::chakra
