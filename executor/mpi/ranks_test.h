#pragma once
// For the tests that mpirun starts: all ranks run the same cases in the same order.

#include "executor/mpi/mpi_world.h"

namespace optimus::executor {

// Of this process; made by the main function of ranks_main.cc.
MpiWorld& TestWorld();

}  // namespace optimus::executor
