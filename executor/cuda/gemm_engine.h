#pragma once
// GEMMs by cuBLASLt. Which of its kernels runs a problem is asked once, as PyTorch and Transformer
// Engine do: the first one that its heuristic names.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/gemm_plan.h"
#include "executor/cuda/libraries.h"
#include "executor/cuda/memory.h"

namespace optimus::executor::cuda {

// What the addresses of A, B and C are multiples of, in bytes.
struct GemmAlignment {
  std::int64_t a = 256, b = 256, c = 256;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const GemmAlignment&, const GemmAlignment&) = default;
};

class PreparedGemm;

class GemmEngine {
 public:
  static absl::StatusOr<std::unique_ptr<GemmEngine>> Create(const BlasLt& blas);
  ~GemmEngine();
  GemmEngine(const GemmEngine&) = delete;
  GemmEngine& operator=(const GemmEngine&) = delete;

  // Stays good as long as the engine. UNIMPLEMENTED where cuBLASLt has no kernel for it.
  absl::StatusOr<const PreparedGemm*> Prepare(const GemmProblem& problem,
                                              const GemmAlignment& alignment);
  // All on one stream: they share a workspace.
  absl::Status Run(const PreparedGemm& gemm, const void* a, const void* b, void* c,
                   cudaStream_t stream) const;

 private:
  explicit GemmEngine(const BlasLt& blas);
  absl::Status Check(cublasStatus_t status, const char* what) const;
  absl::Status Describe(const GemmProblem& problem, PreparedGemm& gemm) const;
  absl::Status Choose(const GemmAlignment& alignment, PreparedGemm& gemm) const;

  const BlasLt& blas_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory<char> workspace_;
  std::map<std::pair<GemmProblem, GemmAlignment>, std::unique_ptr<PreparedGemm>> prepared_;
};

}  // namespace optimus::executor::cuda
