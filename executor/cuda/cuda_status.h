#pragma once
// Errors of CUDA as absl::Status.

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace optimus::executor::cuda {

// "cuda: cudaMalloc: out of memory". `call` may be a whole expression; its first word is named.
absl::Status CudaStatus(cudaError_t error, const std::string& call);

#define OPTIMUS_CUDA_RETURN_IF_ERROR(call) \
  OPTIMUS_RETURN_IF_ERROR(::optimus::executor::cuda::CudaStatus((call), #call))

}  // namespace optimus::executor::cuda
