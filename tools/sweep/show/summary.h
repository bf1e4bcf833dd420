#pragma once
// How far a sweep has come and what its results rest on: the first lines of every answer.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/show/select.h"

namespace optimus::sweep {

struct Summary {
  std::int64_t points = 0;        // of this database
  std::int64_t total_points = 0;  // of the whole sweep: more where this is a shard
  std::int64_t excluded = 0;      // combinations that the sweep's conditions leave out
  PointCounts counts;
  // Of the points (or means over seeds) that answer: all of `ok` that --where selects, and those of
  // them that are left out since they do not fit.
  std::int64_t selected = 0, left_out = 0;
  // Points of the means that answer, and those of them that did not run: the means are without
  // them.
  std::int64_t seeds_asked = 0, seeds_missing = 0;
  // More than one of either: the results do not compare.
  std::vector<std::string> versions, profile_hashes;
};

absl::StatusOr<Summary> Summarize(const Database& database, const About& about,
                                  const Filter& filter);

// Points without a usable result, alike but for their numbers.
struct ErrorGroup {
  std::string status, error;  // of the first point of the group
  std::int64_t points = 0;
  std::int64_t example = 0;         // the number of that point
  std::vector<SqlValue> axes = {};  // of the example: as axes and derived columns
};
// Groups of most points first; ties: by the example's number.
absl::StatusOr<std::vector<ErrorGroup>> GroupErrors(const Database& database, const About& about,
                                                    const Filter& filter);

}  // namespace optimus::sweep
