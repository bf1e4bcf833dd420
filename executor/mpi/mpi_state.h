#pragma once
// What the world and its communicators share: handles of MPI, who is where, how long to wait.

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace optimus::executor {

struct MpiState {
  // Of all ranks; each kind of traffic has one of its own.
  MPI_Comm calls = MPI_COMM_NULL;     // MpiWorld
  MPI_Comm notes = MPI_COMM_NULL;     // MpiWorld
  MPI_Comm messages = MPI_COMM_NULL;  // Send and Receive
  MPI_Comm groups = MPI_COMM_NULL;    // collectives; the tag says of which group
  MPI_Comm node = MPI_COMM_NULL;      // the ranks of this node
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  int largest_tag = 32767;           // MPI_TAG_UB; the standard's least
  std::int64_t clock_offset_ns = 0;  // this host's clock + offset = rank 0's

  absl::Duration patience = absl::InfiniteDuration();
  std::function<absl::Status()> tick;
  // Something failed: MPI_Finalize would wait for ranks that never come.
  std::atomic<bool> failed{false};
};

// Calls `done` until it gives true or an error, with sleeps that grow from 5 us to 200 us and never
// exceed an eighth of the wait so far. DEADLINE_EXCEEDED "<text()> after <patience>", the error of
// the tick, or that of `done`; each of them marks the state as failed.
absl::Status AwaitMpi(MpiState& state, absl::FunctionRef<absl::StatusOr<bool>()> done,
                      absl::FunctionRef<std::string()> text);

}  // namespace optimus::executor
