#pragma once
// A run: warm-up and measured steps of one Schedule on all ranks, and what came of it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "executor/runtime/runtime.h"
#include "schedule/ir/timeline.h"

namespace optimus::executor {

struct RunOptions {
  int warm_up = 2;
  int steps = 10;
  int first_step = 0;  // number of the first step: runs of one Runtime may be done in parts
};

// Of one measured step, where time is emulated: how well it was kept. Zero elsewhere.
struct Lateness {
  Picoseconds step;     // what the step should have taken, from the same begin
  Picoseconds late;     // most that an operation of any rank ended after its time
  Picoseconds compute;  // what computing should have taken, the optimizer included: mean over ranks
};

// At rank 0; elsewhere it is empty.
struct RunResult {
  std::vector<Picoseconds> steps;  // measured ones, in order: first begin to last end of all ranks
  std::vector<std::vector<std::vector<OperationTime>>> times;  // by measured step, rank, operation
  std::vector<Lateness> lateness;                              // by measured step
  std::vector<std::int32_t> ranks;
};

// All ranks call it. `while_waiting` as in Runtime::Step.
absl::StatusOr<RunResult> Run(Runtime& runtime, World& world, const RunOptions& options,
                              absl::FunctionRef<absl::Status()> while_waiting);

// The Timeline of one measured step: spans and accounts of all ranks, from the first begin.
// `runner` is "cpu", "cuda", ... An operation counts from the moment it could begin: what launching
// it takes belongs to it, as a profile's launch time does. Compute, optimizer and bubbles of every
// rank add up to the step.
ir::Timeline MakeTimeline(const ir::Schedule& schedule,
                          const std::vector<std::vector<OperationTime>>& times,
                          const std::string& runner);

// Of the measured steps: index of the one whose length is the median (the lower of two).
std::size_t MedianStep(const std::vector<Picoseconds>& steps);

}  // namespace optimus::executor
