#include "executor/backends/parts.h"

namespace optimus::executor {
namespace {

absl::Status NoMpi() {
  return absl::UnimplementedError(
      "this build has no MPI, over which the ranks of the cpu and emulated backends talk; hint: "
      "install an MPI library and configure with -DOPTIMUS_MPI=ON");
}

}  // namespace

std::optional<std::string> MpiPart() { return std::nullopt; }

absl::StatusOr<std::unique_ptr<World>> JoinMpi(int& /*argc*/, char**& /*argv*/) { return NoMpi(); }

absl::StatusOr<std::unique_ptr<Communicator>> MakeHostCommunicator(World& /*world*/,
                                                                   HostDevice& /*device*/) {
  return NoMpi();
}

absl::StatusOr<Backend> MakeEmulated(World& /*world*/, const BackendOptions& /*options*/) {
  return NoMpi();
}

}  // namespace optimus::executor
