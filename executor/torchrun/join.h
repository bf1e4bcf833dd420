#pragma once
// How the ranks find each other: everybody connects to rank 0 and says who it is; rank 0 turns away
// who does not belong here, and welcomes all once all are there.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "executor/torchrun/connection.h"
#include "executor/torchrun/environment.h"

namespace optimus::executor {

struct Joined {
  // By rank. At rank 0: a connection to every other rank. Elsewhere: the one to rank 0.
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::string> hosts;  // by rank; elsewhere than at rank 0 only that of rank 0
  std::string machine_of_rank_0;   // ThisMachine() there
};

// Differs between machines, and between boots of one: ranks that agree share a clock.
std::string ThisMachine();

absl::StatusOr<Joined> JoinRanks(const TorchrunEnvironment& environment, absl::Duration patience);

// "ranks 1, 4 and 12 more": few enough to read.
std::string ListRanks(const std::vector<int>& ranks);

}  // namespace optimus::executor
