#pragma once
// Communicator over MPI for the streams of a HostDevice. Nothing blocks: operations are state
// machines that the device's communication thread polls, so a rank that is gone leaves the others
// waiting where their watchdog can end them, never inside MPI.
//
// All data moves by MPI_Isend and MPI_Irecv between pairs. Collectives are direct exchanges: every
// member sends its block to every other at once, and reduces locally in the order of ranks, so
// results do not depend on who comes first. Groups are numbers in the tags of one MPI communicator;
// making one costs its members two small messages.
//
// Without a Payload own buffers are moved: at least the stated bytes, rounded up to whole floats
// and equal parts. With one, all-gather and all-to-all need equal parts on all members, and a
// reduce-scatter or all-to-all needs a multiple of the group's size; rank 0 of the group is the
// root of a broadcast. Sizes that do not fit are INVALID_ARGUMENT when the operation runs.

#include <memory>

#include "absl/status/statusor.h"
#include "executor/host/host_device.h"
#include "executor/mpi/pacing.h"
#include "executor/runtime/communicator.h"
#include "executor/runtime/world.h"

namespace optimus::executor {

// The Communicator of all ranks of `world`, which must be an MpiWorld (else FAILED_PRECONDITION).
// All ranks call it together. World and device must outlive it and what is split from it. `pacing`:
// null for real transfers; else it outlives the communicator. One per device: it sets the device's
// progress, and is destroyed after those that were split from it.
absl::StatusOr<std::unique_ptr<Communicator>> MakeMpiCommunicator(World& world, HostDevice& device,
                                                                  Pacing* pacing = nullptr);

}  // namespace optimus::executor
