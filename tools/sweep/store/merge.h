#pragma once
// Databases of parts of one sweep (shards, runs that were cut off) become one: their union.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sweep/store/schema.h"

namespace optimus::sweep {

struct MergeSummary {
  std::int64_t databases = 0;         // that were read, the old `out` among them
  PointCounts counts;                 // of the merged database
  std::int64_t not_listed = 0;        // points of the sweep that no database has: of absent shards
  std::vector<std::string> versions;  // of optimus; the oldest first
  std::int64_t of_several_versions = 0;  // simulations of which one version's result is kept
};

// Makes `out`, whole or not at all, of the union of `in`. Where `out` exists it is one more of
// them: its contents are replaced in one transaction. The table that comes out depends neither on
// the order of `in` nor on how often or in how many steps it is merged.
//
// Of several results of one simulation: "ok" and "impossible" win over those that failed by chance,
// then the newer version of optimus wins, then the first in the order of their values.
//
// Named with both files and both values, INVALID_ARGUMENT: another sweep, other columns, a point
// with two simulations, a simulation with two different results of one version; and without
// `allow_mixed_versions`, results of two versions of optimus. Else as Database::Open and ToStatus,
// with the file's name. A database that is still being written is read as it is at one moment.
absl::StatusOr<MergeSummary> MergeSweeps(const std::string& out, const std::vector<std::string>& in,
                                         bool allow_mixed_versions);

}  // namespace optimus::sweep
