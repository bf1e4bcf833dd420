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

// Rank 0 found the same error and says it; a rank that ends first could get it killed before.
void WaitForFirstRank();

// "mpirun -np 2 optimus run FILE ...", to be read in errors.
std::string LaunchCommand(int ranks, const Arguments& arguments);

// Replaces this process by mpirun, which starts `ranks` of it with the same arguments. Returns only
// where that is not possible.
absl::Status RelaunchOnRanks(int ranks, const Arguments& arguments);

}  // namespace optimus::tools
