#pragma once
// How the GEMMs of training lie in memory, in cuBLAS's terms (matrices stored by columns).
//
// Weights are W[out, in], activations X[tokens, features], stored by rows as PyTorch and
// Megatron-LM store them:
//   forward         Y = X W^T           "TN"
//   data gradient   dX = dY W           "NN"
//   weight gradient dW += dY^T X, fp32  "NT"
// cuBLAS computes the transposed product, because a matrix by rows is its transpose by columns.
// The layouts decide which GPU kernels there are to choose from, so they are part of the work.

#include <cstdint>
#include <string>

#include "base/kernel.h"

namespace optimus::executor::cuda {

// C[m,n] = alpha op(A)[m,k] op(B)[k,n] + beta C, by columns, bf16 with fp32 accumulation; `batch`
// of them, strides in elements.
struct GemmProblem {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  bool float_output = false;  // C is fp32, else bf16
  float alpha = 1, beta = 0;
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend auto operator<=>(const GemmProblem&, const GemmProblem&) = default;
};

enum class GemmRole : std::uint8_t { kForward, kDataGradient, kWeightGradient };
// By the kernel's name: "..._dgrad", "..._wgrad", else forward.
GemmRole RoleOf(const std::string& kernel_name);

// Of a kGemm kernel C[m,n] = A[m,k] B[k,n]. Alpha keeps the output as large as the inputs, so that
// numbers neither grow nor vanish over the steps: the power that a GPU draws depends on them.
GemmProblem PlanGemm(const Kernel& kernel);

// Bytes of the operands A, B and C of one problem of the batch, all of them together.
std::int64_t BytesOfA(const GemmProblem& problem);
std::int64_t BytesOfB(const GemmProblem& problem);
std::int64_t BytesOfC(const GemmProblem& problem);

// What an operand's address is a multiple of, in bytes (a power of two, at most 256), where it
// begins so many bf16 elements after an aligned one: kernels with wide loads need it.
std::int64_t AlignmentOf(std::int64_t offset_elements);

}  // namespace optimus::executor::cuda
