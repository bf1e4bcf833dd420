#pragma once
// What torchrun tells a process in its environment.

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace optimus::executor {

struct TorchrunEnvironment {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // of this node
  std::string address;                 // MASTER_ADDR: where rank 0 is
  // Where rank 0 listens: OPTIMUS_PORT, else MASTER_PORT + 1 (torchrun itself holds MASTER_PORT).
  int port = 0;
  std::string job;  // TORCHELASTIC_RUN_ID: ranks of another job are turned away
};

// The value of an environment variable, nothing where it is not set.
using EnvironmentReader = std::function<std::optional<std::string>(const std::string& name)>;
EnvironmentReader ProcessEnvironment();

// True where RANK, WORLD_SIZE and MASTER_ADDR are set: a launcher like torchrun started us.
bool UnderTorchrun(const EnvironmentReader& read);
// True where somebody meant to: which rank this is (RANK or LOCAL_RANK) is set, and that there are
// others (WORLD_SIZE over 1, or MASTER_ADDR). Batch scripts set the one, stray variables of a shell
// the other; neither alone makes a rank.
bool MeantAsTorchrun(const EnvironmentReader& read);

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (or OPTIMUS_PORT) must be set; LOCAL_RANK and
// LOCAL_WORLD_SIZE as well where there is more than one rank. INVALID_ARGUMENT names the rank, and
// all variables that are missing or the first that is wrong.
absl::StatusOr<TorchrunEnvironment> ReadTorchrunEnvironment(const EnvironmentReader& read);

}  // namespace optimus::executor
