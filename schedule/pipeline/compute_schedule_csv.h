#pragma once
// A pipeline order as PyTorch's pipeline-schedule CSV: what torchtitan reads by
// pipeline_parallel_schedule_csv and torch.distributed.pipelining's _PipelineScheduleRuntime reads
// and writes by _load_csv and _dump_csv, format "compute_only". One row a rank, one cell an action:
//
//   0F0      forward of stage 0 (counted along the whole model), micro-batch 0
//   0B0      its backward, whole
//   0I0 0W0  its backward in two parts: gradient of the input, then of the weights
//   (0F4;7B0)OVERLAP_F_B   a forward that shares the rank with a whole backward
//   (empty)  idle
//
// Communication (0SEND_F0, 1RECV_F0, 1SEND_B0, 0RECV_B0, 0UNSHARD, 0RESHARD, 0REDUCE_GRAD), which
// format "compute_comms" has as well, follows from the order and is derived anew: it is checked
// (compute_schedule_communication.h), left out and counted.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedule/pipeline/order.h"

namespace optimus::pipeline {

struct ComputeSchedule {
  Order order;
  std::map<std::string, std::int64_t> left_out;  // how many of each communication action
};

// The order whose stage r runs row r. Where `placement` is not given it is the one by which the
// ranks hold their stages: a loop, or else a V (one rank, or one stage on each: a loop). Idle cells
// leave no trace, since an order has no times.
//
// INVALID_ARGUMENT "rank R (line L), cell C "TEXT": ..." for what is no action, and for one that
// runs twice or too early; also, naming rank and stage, for a stage without a rank or with two, a
// placement that is neither, or mixed, or not the one asked for, an action that is missing, and
// ranks that wait for each other for ever, every one of them. kBidirectional cannot be asked for:
// the format has no place for a second copy of a stage.
absl::StatusOr<ComputeSchedule> ReadComputeSchedule(
    absl::string_view text, std::optional<Placement> placement = std::nullopt);

// Every cell is one step in time; idle cells show what waits for what, as in PyTorch's own files.
// Read again (with the same placement, where there is one rank or one chunk) it is the same order.
// INVALID_ARGUMENT for an order that does not pass ValidateOrder or that deadlocks, and for
// kBidirectional.
absl::StatusOr<std::string> WriteComputeSchedule(const Order& order);

}  // namespace optimus::pipeline
