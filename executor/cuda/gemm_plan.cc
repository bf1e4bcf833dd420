#include "executor/cuda/gemm_plan.h"

#include <cmath>

#include "absl/strings/match.h"

namespace optimus::executor::cuda {
namespace {

constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kFp32 = 4;

}  // namespace

GemmRole RoleOf(const std::string& kernel_name) {
  if (absl::EndsWith(kernel_name, "_dgrad")) return GemmRole::kDataGradient;
  if (absl::EndsWith(kernel_name, "_wgrad")) return GemmRole::kWeightGradient;
  return GemmRole::kForward;
}

GemmProblem PlanGemm(const Kernel& kernel) {
  const GemmShape& shape = kernel.gemm;
  GemmProblem problem;
  problem.m = shape.n;  // C by rows is C^T by columns, so the product is B^T A^T
  problem.n = shape.m;
  problem.k = shape.k;
  problem.ldc = shape.n;
  problem.alpha = 1.0F / std::sqrt(static_cast<float>(shape.k));
  switch (RoleOf(kernel.name)) {
    case GemmRole::kForward:  // W[n,k], X[m,k] by rows
      problem.transpose_a = true;
      problem.lda = shape.k;
      problem.ldb = shape.k;
      break;
    case GemmRole::kDataGradient:  // W[k,n], dY[m,k] by rows
      problem.lda = shape.n;
      problem.ldb = shape.k;
      break;
    case GemmRole::kWeightGradient:  // X[k,n], dY[k,m] by rows
      problem.transpose_b = true;
      problem.lda = shape.n;
      problem.ldb = shape.m;
      problem.float_output = true;
      problem.beta = 1;
      break;
  }
  return problem;
}

std::int64_t BytesOfA(const GemmProblem& problem) {
  const std::int64_t columns = problem.transpose_a ? problem.m : problem.k;
  return ((problem.batch - 1) * problem.stride_a + problem.lda * columns) * kBf16;
}

std::int64_t BytesOfB(const GemmProblem& problem) {
  const std::int64_t columns = problem.transpose_b ? problem.k : problem.n;
  return ((problem.batch - 1) * problem.stride_b + problem.ldb * columns) * kBf16;
}

std::int64_t BytesOfC(const GemmProblem& problem) {
  const std::int64_t elements = (problem.batch - 1) * problem.stride_c + problem.ldc * problem.n;
  return elements * (problem.float_output ? kFp32 : kBf16);
}

std::int64_t AlignmentOf(std::int64_t offset_elements) {
  std::int64_t alignment = 256;
  while (offset_elements * kBf16 % alignment != 0) alignment /= 2;
  return alignment;
}

}  // namespace optimus::executor::cuda
