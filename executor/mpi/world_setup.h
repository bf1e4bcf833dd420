#pragma once
// Joins the processes of one launcher: MPI_Init, communicators, nodes, clocks. Blocking calls are
// allowed here: a process that dies before the others are there is the launcher's to notice, and
// how long they may take is the caller's to limit, from another thread.

#include "absl/status/status.h"
#include "executor/mpi/mpi_state.h"

namespace optimus::executor {

absl::Status SetUpMpi(int& argc, char**& argv, bool measure_all_clocks, MpiState& state);

}  // namespace optimus::executor
