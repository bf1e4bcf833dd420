#pragma once
// What one rank finds wrong, all ranks hear of: else the others would wait for it.

#include "absl/status/status.h"
#include "executor/runtime/world.h"

namespace optimus::executor::cuda {

// Called by all ranks with what each found. The error of the lowest rank that has one, with its
// rank in front where there is more than one, at every rank.
absl::Status Agree(World& world, const absl::Status& mine);

}  // namespace optimus::executor::cuda
