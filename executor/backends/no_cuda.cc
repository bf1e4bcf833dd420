#include "executor/backends/parts.h"

namespace optimus::executor {

std::optional<std::string> CudaPart() { return std::nullopt; }

absl::StatusOr<Backend> MakeCudaBackend(World& /*world*/, const BackendOptions& /*options*/) {
  return absl::UnimplementedError(
      "the cuda backend is not in this build; hint: install the CUDA toolkit (nvcc, cuBLAS, NCCL) "
      "and configure with -DOPTIMUS_CUDA=ON");
}

}  // namespace optimus::executor
