#include <utility>

#include "base/status_macros.h"
#include "executor/backends/parts.h"
#include "executor/backends/self_communicator.h"
#include "executor/emulated/emulated_device.h"
#include "executor/mpi/mpi_communicator.h"
#include "executor/mpi/mpi_world.h"

namespace optimus::executor {

std::optional<std::string> MpiPart() { return MpiLibrary(); }

absl::StatusOr<std::unique_ptr<World>> JoinMpi(int& argc, char**& argv) {
  return MpiWorld::Create(argc, argv);
}

absl::StatusOr<std::unique_ptr<Communicator>> MakeHostCommunicator(World& world,
                                                                   HostDevice& device) {
  return MakeMpiCommunicator(world, device);
}

absl::StatusOr<Backend> MakeEmulated(World& world, const BackendOptions& options) {
  if (options.costs == nullptr) {
    return absl::InvalidArgumentError(
        "the emulated backend needs a cost model: a hardware profile or the schedule's own times");
  }
  EmulatedOptions emulated;
  emulated.time_scale = options.time_scale;
  OPTIMUS_ASSIGN_OR_RETURN(auto device, EmulatedDevice::Create(*options.costs, emulated));
  Backend backend;
  if (world.launcher() == "mpi") {
    OPTIMUS_ASSIGN_OR_RETURN(backend.ranks, MakeEmulatedCommunicator(world, *device));
  } else {
    backend.ranks = MakeSelfCommunicator(*device);
  }
  backend.device = std::move(device);
  return backend;
}

}  // namespace optimus::executor
