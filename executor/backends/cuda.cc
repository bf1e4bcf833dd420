#include <utility>

#include "base/status_macros.h"
#include "executor/backends/parts.h"
#include "executor/cuda/cuda_backend.h"

namespace optimus::executor {

std::optional<std::string> CudaPart() { return DescribeCuda(); }

absl::StatusOr<Backend> MakeCudaBackend(World& world, const BackendOptions& options) {
  CudaOptions cuda;
  cuda.graph = options.cuda_graph;
  cuda.checked_steps = options.cuda_checked_steps;
  OPTIMUS_ASSIGN_OR_RETURN(CudaBackend made, MakeCuda(world, cuda));
  return Backend{std::move(made.device), std::move(made.ranks)};
}

}  // namespace optimus::executor
