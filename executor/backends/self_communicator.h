#pragma once
// The Communicator of one rank alone on the streams of a HostDevice. Its collectives move nothing:
// a rank's input is its output. Messages to oneself do not exist.

#include <memory>

#include "executor/host/host_device.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor {

// The device must outlive it.
std::unique_ptr<Communicator> MakeSelfCommunicator(HostDevice& device);

}  // namespace optimus::executor
