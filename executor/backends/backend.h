#pragma once
// The backends of this build: a World, a Device and the world's Communicator that go together. What
// a build leaves out (CMake options OPTIMUS_MPI, OPTIMUS_ONEDNN, OPTIMUS_CUDA) is refused by name
// with UNIMPLEMENTED and the option that brings it.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cost_model.h"
#include "executor/runtime/communicator.h"
#include "executor/runtime/device.h"
#include "executor/runtime/world.h"
#include "executor/torchrun/join_options.h"

namespace optimus::executor {

enum class BackendKind { kCpu, kCuda, kEmulated };
const char* ToString(BackendKind kind);
// INVALID_ARGUMENT lists the names.
absl::StatusOr<BackendKind> ParseBackend(const std::string& text);

struct BackendOptions {
  bool bf16 = false;      // cpu: arithmetic of GEMMs and attention; else f32
  bool pin = true;        // cpu: rank i of a node on the i-th core that the node lets it use,
                          // unless the launcher has bound it already
  double time_scale = 1;  // emulated: real time per profiled time
  const CostModel* costs = nullptr;  // emulated: outlives the backend
  bool cuda_graph = false;           // cuda: capture a step once and launch it as a graph
  int cuda_checked_steps = 2;        // cuda: stamps are checked in so many steps (the warm-up)
};

// MPI where mpirun or srun started this process, torchrun's environment where that is there, else
// one rank alone. Call it once, before anything else of the executor; the World must outlive all.
// UNIMPLEMENTED where ranks were started in a way that this build or this kind of backend cannot
// join; FAILED_PRECONDITION where a launcher started several ranks that do not see each other. All
// other errors by torchrun's variables are this rank's own: others may not know of them. `options`
// is for ranks that find each other by these; an MPI library waits as it likes.
absl::StatusOr<std::unique_ptr<World>> JoinWorld(BackendKind kind, int& argc, char**& argv,
                                                 const JoinOptions& options = {});

struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> ranks;  // of the world; destroyed before the device
};
// Called by all ranks. UNIMPLEMENTED: not in this build, or not between the ranks of this world;
// INVALID_ARGUMENT: options; UNAVAILABLE: no such device here.
absl::StatusOr<Backend> MakeBackend(BackendKind kind, World& world, const BackendOptions& options);

// "cpu (oneDNN 2.6.3, Open MPI 4.1.4)", "cuda: not in this build (OPTIMUS_CUDA)": for `optimus run
// --help` and errors.
std::vector<std::string> DescribeBackends();

}  // namespace optimus::executor
