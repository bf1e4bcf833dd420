#pragma once
// Simulates the points of a sweep, a few at a time, into its database.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/sweep/pool/pool.h"
#include "tools/sweep/run/outcome.pb.h"
#include "tools/sweep/run/survey.h"
#include "tools/sweep/spec/sweep.h"

namespace optimus::sweep {

struct EngineProgress {
  std::int64_t done = 0, all = 0;  // simulations of this run
  double elapsed_s = 0;            // since the first one was started
};

struct EngineOptions {
  std::string database;
  bool resume = false;
  Shard shard;
  int workers = 1;
  JobLimits limits;
  // In a process of its own. Its errors belong into the outcome.
  std::function<PointOutcome(const Point&)> evaluate;
  std::function<void(const EngineProgress&)> progress;  // may be empty
  // Called once before the first simulation. May be empty.
  std::function<void(const Survey&)> surveyed;
  std::function<bool()> stop;  // as Pool::stop; may be empty
};

// Of the shard.
struct EngineResult {
  Survey survey;
  std::int64_t found = 0;      // simulations that were done before
  std::int64_t simulated = 0;  // in this run
  PointCounts counts;          // of all; some are only found to be impossible when they are planned
  double wall_s = 0;
};

// Results are in the database as soon as they are known, so that a run may end at any moment and be
// taken up with `resume`; that tries again what failed, ran out of memory or time. A process that
// is killed is started once more before its point counts as failed.
//
// ALREADY_EXISTS: the database is there, and `resume` is not set. FAILED_PRECONDITION: it is of
// another sweep or version, or another sweep is writing it. RESOURCE_EXHAUSTED: the disk is full;
// what was written before can be read. CANCELLED: `stop`.
absl::StatusOr<EngineResult> RunSweep(LoadedSweep& sweep, const EngineOptions& options);

}  // namespace optimus::sweep
