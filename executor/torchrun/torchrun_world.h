#pragma once
// A World over TCP for ranks that torchrun (or anything that sets its variables) started: rank 0
// listens, all others connect to it. It carries what ranks agree on outside a step, not the data.

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/runtime/world.h"
#include "executor/torchrun/environment.h"

namespace optimus::executor {

// Called once by every rank; returns when all are there. UNAVAILABLE or DEADLINE_EXCEEDED name the
// address and the ranks that did not come within `patience`.
absl::StatusOr<std::unique_ptr<World>> JoinTorchrunWorld(const TorchrunEnvironment& environment,
                                                         absl::Duration patience);

}  // namespace optimus::executor
