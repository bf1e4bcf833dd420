#include "executor/backends/backend.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "executor/backends/launcher.h"
#include "executor/backends/parts.h"
#include "executor/backends/self_communicator.h"
#include "executor/torchrun/torchrun_world.h"

namespace optimus::executor {
namespace {

// A launcher whose MPI is another than ours starts ranks that are each alone.
absl::StatusOr<std::unique_ptr<World>> JoinLaunchedByMpi(const Launcher& launcher, int& argc,
                                                         char**& argv) {
  if (!MpiPart().has_value() && launcher.ranks == 1) {
    return MakeSelfWorld();
  }
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<World> world, JoinMpi(argc, argv));
  if (launcher.ranks > 1 && world->size() == 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        launcher.name, " started ", launcher.ranks, " ranks, but to ", *MpiPart(),
        " each is alone; hint: start them by the mpirun of that library, or by srun --mpi=pmix"));
  }
  return world;
}

absl::StatusOr<std::unique_ptr<World>> JoinTorchrun(BackendKind kind, const JoinOptions& options) {
  const EnvironmentReader read = ProcessEnvironment();
  if (kind == BackendKind::kCuda) {
    OPTIMUS_ASSIGN_OR_RETURN(const TorchrunEnvironment environment, ReadTorchrunEnvironment(read));
    return JoinTorchrunWorld(environment, options);
  }
  if (read("WORLD_SIZE") == "1") {
    return MakeSelfWorld();
  }
  return absl::UnimplementedError(absl::StrCat(
      "RANK and WORLD_SIZE are set, as by torchrun, but the ranks of the ", ToString(kind),
      " backend talk over MPI; hint: start them by mpirun or srun; to run one rank alone, unset "
      "RANK and WORLD_SIZE"));
}

absl::StatusOr<Backend> MakeCpuBackend(World& world, const BackendOptions& options) {
  OPTIMUS_ASSIGN_OR_RETURN(std::unique_ptr<HostDevice> device, MakeCpu(world, options));
  Backend backend;
  if (world.launcher() == "mpi") {
    OPTIMUS_ASSIGN_OR_RETURN(backend.ranks, MakeHostCommunicator(world, *device));
  } else {
    backend.ranks = MakeSelfCommunicator(*device);
  }
  backend.device = std::move(device);
  return backend;
}

std::string NotBuilt(BackendKind kind, const char* option) {
  return absl::StrCat(ToString(kind), ": not in this build (", option, ")");
}

}  // namespace

const char* ToString(BackendKind kind) {
  switch (kind) {
    case BackendKind::kCpu:
      return "cpu";
    case BackendKind::kCuda:
      return "cuda";
    case BackendKind::kEmulated:
      return "emulated";
  }
  return "invalid";
}

absl::StatusOr<BackendKind> ParseBackend(const std::string& text) {
  for (const BackendKind kind : {BackendKind::kCpu, BackendKind::kCuda, BackendKind::kEmulated}) {
    if (text == ToString(kind)) {
      return kind;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("backend '", text, "': must be cpu, cuda or emulated"));
}

absl::StatusOr<std::unique_ptr<World>> JoinWorld(BackendKind kind, int& argc, char**& argv,
                                                 const JoinOptions& options) {
  const Launcher launcher = FindLauncher(ProcessEnvironment());
  switch (launcher.kind) {
    case Launcher::Kind::kMpi:
      return JoinLaunchedByMpi(launcher, argc, argv);
    case Launcher::Kind::kTorchrun:
      return JoinTorchrun(kind, options);
    case Launcher::Kind::kNone:
      break;
  }
  return MakeSelfWorld();
}

absl::StatusOr<Backend> MakeBackend(BackendKind kind, World& world, const BackendOptions& options) {
  if (kind != BackendKind::kCuda && world.launcher() != "mpi" && world.size() > 1) {
    return absl::UnimplementedError(
        absl::StrCat("the ranks of the ", ToString(kind),
                     " backend talk over MPI, these were started by: ", world.launcher()));
  }
  switch (kind) {
    case BackendKind::kCpu:
      return MakeCpuBackend(world, options);
    case BackendKind::kCuda:
      return MakeCudaBackend(world, options);
    case BackendKind::kEmulated:
      return MakeEmulated(world, options);
  }
  return absl::InvalidArgumentError("an unknown kind of backend");
}

std::vector<std::string> DescribeBackends() {
  const std::optional<std::string> cpu = CpuPart(), cuda = CudaPart(), mpi = MpiPart();
  return {
      !cpu.has_value()
          ? NotBuilt(BackendKind::kCpu, "OPTIMUS_ONEDNN")
          : absl::StrCat("cpu (", *cpu, mpi.has_value() ? ", " + *mpi : ", one rank: no MPI", ")"),
      !cuda.has_value() ? NotBuilt(BackendKind::kCuda, "OPTIMUS_CUDA")
                        : absl::StrCat("cuda (", *cuda, ")"),
      !mpi.has_value() ? NotBuilt(BackendKind::kEmulated, "OPTIMUS_MPI")
                       : absl::StrCat("emulated (", *mpi, ")"),
  };
}

}  // namespace optimus::executor
