#pragma once
// What enqueuing one rank's program needs, worked out once: a step then costs a few calls an
// operation.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "executor/runtime/channels.h"
#include "executor/runtime/device.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/stamp.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor {

struct PlannedOperation {
  ir::OperationKind kind = ir::OperationKind::kKernel;
  ir::Stream stream = ir::Stream::kCompute;
  std::int32_t work = -1;     // kKernel: index into Plan::kernels; else Operation::work
  std::int32_t channel = -1;  // kCollective: index into Channels::channels
  std::int32_t peer = -1;     // kSend, kReceive: global rank
  std::int32_t message = -1;
  std::uint32_t first_wait = 0, wait_count = 0;  // range in Plan::waits
  Stamp stamp;                                   // of what it makes
  Stamp carried;  // of what it moves: a message's is its send's, a collective's has the first
                  // member's tag. Steps are filled in when it is enqueued.
};

struct Plan {
  RankPlace place;
  std::vector<PlannedOperation> operations;  // by id
  std::vector<std::uint32_t> order;          // ids, as they are enqueued
  std::vector<std::uint32_t> waits;          // see NeededWaits
  std::vector<Kernel> kernels;               // distinct, in order of first use
  std::vector<std::uint32_t> receives;       // ids of the receives
  absl::Span<const std::uint32_t> WaitsOf(const PlannedOperation& op) const {
    return absl::MakeConstSpan(waits).subspan(op.first_wait, op.wait_count);
  }
};

// The Schedule must be valid.
Plan MakePlan(const ir::Schedule& schedule, const Channels& channels, int rank);

}  // namespace optimus::executor
