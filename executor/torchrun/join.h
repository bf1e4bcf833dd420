#pragma once
// How the ranks find each other: everybody connects to rank 0 and says who it is; rank 0 turns away
// who does not belong here, and welcomes all once all are there.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/torchrun/connection.h"
#include "executor/torchrun/environment.h"
#include "executor/torchrun/join_options.h"

namespace optimus::executor {

struct Joined {
  // By rank. At rank 0: a connection to every other rank. Elsewhere: the one to rank 0.
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::string> hosts;  // by rank; elsewhere than at rank 0 only that of rank 0
  std::string machine_of_rank_0;   // ThisMachine() there
};

// Differs between machines, and between boots of one: ranks that agree share a clock.
std::string ThisMachine();

// Errors name this rank, the address and, at rank 0, the ranks that did not come: DEADLINE_EXCEEDED
// after options.patience; UNAVAILABLE: the port is taken; NOT_FOUND: no such address; what
// options.tick gave; FAILED_PRECONDITION: rank 0 refused this rank, or ended itself.
absl::StatusOr<Joined> JoinRanks(const TorchrunEnvironment& environment,
                                 const JoinOptions& options);

}  // namespace optimus::executor
