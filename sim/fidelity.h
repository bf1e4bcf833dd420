#pragma once
// Which simplifications are exact for a run.

#include <string>

#include "absl/status/status.h"
#include "schedule/ir/schedule.h"
#include "sim/simgrid_runner.h"

namespace optimus::sim {

// Empty if exact, otherwise why not, as a clause ("GPU 3 is slow").
//
// Group: all ranks of every lane (of a tensor-parallel group, where there is one lane) do
// everything at the same instants. By induction: they run one program, start together, kernels last
// the same (no slow GPU), their collectives end together, and their transfers have like links and
// like company.
std::string WhyGroupIsNotExact(const ir::Schedule& schedule, const Options& options);
// Folded: in addition all data-parallel replicas do.
std::string WhyFoldedIsNotExact(const ir::Schedule& schedule, const Options& options);

// INVALID_ARGUMENT naming the field and its range.
absl::Status ValidateOptions(const ir::Schedule& schedule, const Options& options);

}  // namespace optimus::sim
