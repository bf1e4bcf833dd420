#pragma once
// Who started this process, and with how many others.

#include <string>

#include "executor/torchrun/environment.h"

namespace optimus::executor {

struct Launcher {
  enum class Kind { kNone, kMpi, kTorchrun };
  Kind kind = Kind::kNone;
  std::string name;  // "mpirun", "srun", "torchrun"; for messages
  int ranks = 0;     // kMpi: as it says; 0: it does not
};

// From the environment. torchrun where it says so itself (TORCHELASTIC_RUN_ID): it is then the
// innermost, whatever started it. Else MPI: variables of mpirun (Open MPI, MPICH and its kin), or
// of a step of srun with several tasks. Else torchrun where its variables are set, also where some
// are missing (MeantAsTorchrun), so that joining can say which. A batch script of Slurm that starts
// us without srun is no launcher.
Launcher FindLauncher(const EnvironmentReader& read);

}  // namespace optimus::executor
