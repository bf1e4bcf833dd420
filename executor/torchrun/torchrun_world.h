#pragma once
// A World over TCP for ranks that torchrun (or anything that sets its variables) started: rank 0
// listens, all others connect to it. It carries what ranks agree on outside a step, not the data.

#include <memory>

#include "absl/status/statusor.h"
#include "executor/runtime/world.h"
#include "executor/torchrun/environment.h"
#include "executor/torchrun/join_options.h"

namespace optimus::executor {

// Called once by every rank; returns when all are there. Errors as of JoinRanks (join.h).
absl::StatusOr<std::unique_ptr<World>> JoinTorchrunWorld(const TorchrunEnvironment& environment,
                                                         const JoinOptions& options);

}  // namespace optimus::executor
