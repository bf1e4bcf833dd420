#pragma once
// Which route each message of a rank takes.

#include <cstdint>
#include <map>

#include "executor/runtime/communicator.h"
#include "schedule/ir/schedule.h"

namespace optimus::executor::cuda {

// By message, those that `rank` sends or receives. The Schedule must be valid.
std::map<std::int32_t, Route> RoutesOfMessages(const ir::Schedule& schedule, int rank);

}  // namespace optimus::executor::cuda
