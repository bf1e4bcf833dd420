#pragma once
// Launches kernels of given shape: what base/kernel.h describes, as cuBLASLt calls and kernels of
// ours, on memory of the arena.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/kernel.h"
#include "executor/cuda/arena.h"
#include "executor/cuda/attention_plan.h"
#include "executor/cuda/gemm_engine.h"
#include "executor/cuda/libraries.h"

namespace optimus::executor::cuda {

// A kernel that can be launched.
struct PreparedKernel {
  Kernel kernel;
  std::int64_t input_bytes = 0, output_bytes = 0;  // of the arena
  int launches = 1;                                // on the GPU, about

  const PreparedGemm* gemm = nullptr;  // kGemm
  std::int64_t offset_b = 0;           // kGemm: of the second operand in the input

  struct AttentionCall {
    const PreparedGemm* gemm = nullptr;  // null: the softmax of `softmax`
    AttentionOperand a, b, c;
    SoftmaxStep softmax;
  };
  std::vector<AttentionCall> attention;             // kAttention
  std::map<AttentionTensor, std::int64_t> tensors;  // kAttention: offsets in input or output
};

class Launcher {
 public:
  static absl::StatusOr<std::unique_ptr<Launcher>> Create(const BlasLt& blas, int blocks,
                                                          cudaStream_t stream);

  Arena& arena() { return arena_; }

  // Adds to those that are prepared already, and runs each new one once, so that no code is loaded
  // in a step. Nothing may be running on the GPU. RESOURCE_EXHAUSTED or UNIMPLEMENTED names the
  // kernel.
  absl::Status Prepare(absl::Span<const Kernel> kernels);
  // FAILED_PRECONDITION where it was not prepared.
  absl::StatusOr<const PreparedKernel*> Find(const Kernel& kernel) const;
  // `input`, `output`: offsets in the arena of as many bytes as the prepared kernel says.
  absl::Status Launch(const PreparedKernel& kernel, std::int64_t input, std::int64_t output,
                      cudaStream_t stream) const;

 private:
  Launcher(std::unique_ptr<GemmEngine> engine, int blocks, cudaStream_t stream)
      : engine_(std::move(engine)), arena_(blocks, stream), blocks_(blocks), stream_(stream) {}
  absl::StatusOr<PreparedKernel> PrepareOne(const Kernel& kernel);
  absl::Status PrepareGemm(PreparedKernel& prepared);
  absl::Status PrepareAttention(PreparedKernel& prepared);
  absl::Status RunOnce(const PreparedKernel& kernel);
  absl::Status LaunchAttention(const PreparedKernel& kernel, std::int64_t input,
                               std::int64_t output, cudaStream_t stream) const;
  char* Address(const PreparedKernel& kernel, const AttentionOperand& operand, std::int64_t input,
                std::int64_t output) const;

  std::unique_ptr<GemmEngine> engine_;
  Arena arena_;
  int blocks_;
  cudaStream_t stream_;
  DeviceMemory<char> scores_, score_gradients_;
  std::int64_t score_elements_ = 0, score_gradient_elements_ = 0;
  std::vector<std::unique_ptr<PreparedKernel>> prepared_;
  // By the address of the Kernel, which is where it was in Prepare as a rule.
  mutable std::unordered_map<const Kernel*, const PreparedKernel*> by_address_;
};

}  // namespace optimus::executor::cuda
