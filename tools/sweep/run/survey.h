#pragma once
// All points of a sweep, before anything is simulated.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::sweep {

// One part of a sweep: simulation k (in order of first use) belongs to shard k mod count.
struct Shard {
  std::int64_t index = 0, count = 1;
};

// Points that are equal are one simulation.
struct UniquePoint {
  std::string hash;
  std::int64_t first_point = 0;
  bool impossible = false;
};

struct Survey {
  std::vector<UniquePoint> simulations;  // of the shard
  std::int64_t points = 0;               // of the shard
  std::int64_t impossible_points = 0;    // of the shard
  std::int64_t all_points = 0, all_simulations = 0;
  std::string sweep_hash;
  // Of the shard's impossible points: how many there are of each problem, and the first one. The
  // numbers in a message are left out of its kind.
  struct Problem {
    std::string example;
    std::int64_t first_point = 0, points = 0;
  };
  std::vector<Problem> problems;  // most frequent first
};

// `each` is called with every point of the shard, in order, and whether it is the first of its
// simulation; an error of it ends the survey, as does a `stop` (may be empty) that says true:
// CANCELLED.
absl::StatusOr<Survey> SurveyPoints(
    LoadedSweep& sweep, const Shard& shard,
    const std::function<absl::Status(const Point& point, bool first)>& each,
    const std::function<bool()>& stop = nullptr);

}  // namespace optimus::sweep
