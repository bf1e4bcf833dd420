#pragma once
// What the environment says about how this process was started, and starting it again on many
// ranks.

#include <string>

#include "absl/status/statusor.h"
#include "executor/backends/launcher.h"
#include "tools/command.h"

namespace optimus::tools {

// The rank that a launcher (mpirun, srun, torchrun) gave this process; 0 where there is none.
int LaunchedRank();
// What started this process.
executor::Launcher ThisLauncher();
// The environment variable that says so; empty where there is none.
std::string RankVariable();
// Whether a launcher started this process as one of its ranks.
bool IsLaunched();
// Whether that is torchrun, or what sets its variables.
bool IsByTorchrun();

// Cores of this host that a launcher would count; 0 where the system does not say.
int HostCores();

// "mpirun -np 2 optimus run FILE ...", to be read in errors: by the launcher that started this
// process, if one did. Open MPI refuses more ranks than cores unless it is told to.
std::string LaunchCommand(int ranks, const Arguments& arguments, int cores = HostCores());

// Whether a flag ("--timeout") is among the arguments, as opposed to its default.
bool IsGiven(const std::string& flag, const Arguments& arguments);

// Starts mpirun, which starts `ranks` of this program with the same arguments, and waits for its
// end: the exit code of the ranks, or an error where none of them has said why they ended.
absl::StatusOr<int> RelaunchOnRanks(int ranks, const Arguments& arguments);

}  // namespace optimus::tools
