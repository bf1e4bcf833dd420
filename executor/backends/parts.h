#pragma once
// What a build may lack. Each function has two definitions, one of which says that it is not there
// (no_*.cc: UNIMPLEMENTED, nothing); CMake picks the file.

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "executor/backends/backend.h"
#include "executor/host/host_device.h"

namespace optimus::executor {

// Versions of the libraries, or nothing where the part is not in this build.
std::optional<std::string> MpiPart();
std::optional<std::string> CpuPart();
std::optional<std::string> CudaPart();

// mpi.cc, no_mpi.cc. Communicators of a World that JoinMpi gave.
absl::StatusOr<std::unique_ptr<World>> JoinMpi(int& argc, char**& argv);
absl::StatusOr<std::unique_ptr<Communicator>> MakeHostCommunicator(World& world,
                                                                   HostDevice& device);
absl::StatusOr<Backend> MakeEmulated(World& world, const BackendOptions& options);

// cpu.cc, no_cpu.cc.
absl::StatusOr<std::unique_ptr<HostDevice>> MakeCpu(const World& world,
                                                    const BackendOptions& options);

// cuda.cc, no_cuda.cc.
absl::StatusOr<Backend> MakeCudaBackend(World& world, const BackendOptions& options);

}  // namespace optimus::executor
