#pragma once
// A measured Timeline against a simulated one of the same Schedule: how far apart, and where.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schedule/ir/schedule.h"
#include "schedule/ir/timeline.h"

namespace optimus::validation {

// simulated / measured - 1. 0 where both are 0; infinity where only the measured one is.
double RelativeError(double simulated, double measured);

// A kind of work, over all operations that both timelines hold. "gemm fc1", "all_gather
// qkv_all_gather", "send activation". Receives take no time of their own and are in no row.
struct WorkComparison {
  std::string name;
  std::int64_t operations = 0;
  double simulated_s = 0, measured_s = 0;  // sums over the operations
  bool transfer = false;                   // a collective or a message
};

// Mean over GPUs of one part of the step: compute, optimizer, a bubble class. An entity counts as
// often as it has GPUs, so timelines may be folded differently.
struct ShareComparison {
  std::string name;  // "compute", "optimizer", "bubble_tp", ...
  double simulated_s = 0, measured_s = 0;
  // Of the measured step: (simulated - measured) / step.
  double error_of_step = 0;
};

struct Comparison {
  std::string simulated_runner, measured_runner;  // Timeline::runner: "simgrid", "cpu"
  Picoseconds simulated_step, measured_step;
  double step_error = 0;  // RelativeError
  std::vector<ShareComparison> shares;
  std::vector<WorkComparison> work;  // by measured time, longest first; needs the Schedule
  // Spans of both, and of one only: a simulation records the first replica, a run every rank.
  std::int64_t operations_compared = 0, operations_only_in_one = 0;
};

// `schedule` may be null: then no `work`. INVALID_ARGUMENT where the two are of different worlds,
// their entities do not stand for the same ranks and stages, a rank that both recorded has other
// operations in one than in the other, or `schedule` is not theirs.
absl::StatusOr<Comparison> Compare(const ir::Timeline& simulated, const ir::Timeline& measured,
                                   const ir::Schedule* schedule);

// Whether the simulator ranks as the measurement does: over all pairs whose measured steps differ
// by more than `least_difference` (relative to the smaller). Pairs come in the order of `steps`. A
// pair that the simulator calls equal is not ranked the same.
struct RankedPair {
  std::string faster, slower;                      // as measured
  double measured_ratio = 1, simulated_ratio = 1;  // slower / faster
  bool same = true;
};
struct NamedSteps {
  std::string name;
  double simulated_s = 0, measured_s = 0;
};
std::vector<RankedPair> CompareRanking(const std::vector<NamedSteps>& steps,
                                       double least_difference);

}  // namespace optimus::validation
