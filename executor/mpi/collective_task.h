#pragma once
// A collective as a task of the communication thread: headers to and from every member, beside them
// the rounds of its exchange.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/host/host_device.h"
#include "executor/mpi/transport.h"
#include "executor/runtime/communicator.h"

namespace optimus::executor {

// One communicator, as its tasks need it.
struct GroupLink {
  std::shared_ptr<Transport> transport;
  std::string name;
  std::vector<std::int32_t> ranks;  // global, ascending
  int rank = 0;                     // this process: index into `ranks`
  std::int32_t number = 0;          // of the group, in its tags
  int size() const { return static_cast<int>(ranks.size()); }
};

// `number`: how many collectives of this communicator were issued before.
std::unique_ptr<HostTask> MakeCollectiveTask(std::shared_ptr<const GroupLink> group,
                                             std::int32_t number, const CollectiveCall& call);

}  // namespace optimus::executor
