#pragma once
// Send and receive as tasks of the communication thread.

#include <memory>

#include "executor/host/host_device.h"
#include "executor/mpi/transport.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor {

// A message between two global ranks, of which one is this process.
struct MessageEnds {
  std::int32_t source = 0, destination = 0;
};

std::unique_ptr<HostTask> MakeSendTask(std::shared_ptr<Transport> transport, MessageEnds ends,
                                       const MessageCall& call);
std::unique_ptr<HostTask> MakeReceiveTask(std::shared_ptr<Transport> transport, MessageEnds ends,
                                          const MessageCall& call);

}  // namespace optimus::executor
