#pragma once
// The order in which 2-rank communicators of routes are made. Splitting a communicator is a call of
// all its ranks, but one call can make many communicators of disjoint ranks. So routes are put into
// rounds in which no rank comes twice; thousands of ranks need as many rounds as the busiest rank
// has routes, or somewhat more.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor::cuda {

// Indices into `routes`, by round; the same at every rank that gives the same routes. Each route
// goes into the first round that has neither of its ranks.
std::vector<std::vector<std::size_t>> SplitRounds(absl::Span<const Route> routes);

}  // namespace optimus::executor::cuda
