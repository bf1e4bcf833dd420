#include "executor/cuda/cuda_status.h"

#include "absl/strings/str_cat.h"

namespace optimus::executor::cuda {

absl::Status CudaStatus(cudaError_t error, const std::string& call) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string text =
      absl::StrCat("cuda: ", call.substr(0, call.find('(')), ": ", cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

}  // namespace optimus::executor::cuda
