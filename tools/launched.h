#pragma once
// What the environment says about how this process was started, and starting it again on many
// ranks.

#include "absl/status/status.h"
#include "tools/command.h"

namespace optimus::tools {

// The rank that a launcher (mpirun, srun, torchrun) gave this process; 0 where there is none.
int LaunchedRank();
// Whether a launcher started this process as one of its ranks.
bool IsLaunched();
// Whether that is torchrun, or what sets its variables.
bool IsByTorchrun();

// Rank 0 found the same error and says it; a rank that ends first could get it killed before.
void WaitForFirstRank();

// Cores of this host that a launcher would count; 0 where the system does not say.
int HostCores();

// "mpirun -np 2 optimus run FILE ...", to be read in errors: by the launcher that started this
// process, if one did. Open MPI refuses more ranks than cores unless it is told to.
std::string LaunchCommand(int ranks, const Arguments& arguments, int cores = HostCores());

// Whether a flag ("--timeout") is among the arguments, as opposed to its default.
bool IsGiven(const std::string& flag, const Arguments& arguments);

// Replaces this process by mpirun, which starts `ranks` of it with the same arguments. Returns only
// where that is not possible.
absl::Status RelaunchOnRanks(int ranks, const Arguments& arguments);

}  // namespace optimus::tools
