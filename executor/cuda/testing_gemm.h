#pragma once
// The slow, obvious GEMM that plans are tested with: BLAS's definition, element by element.

#include <cstdint>
#include <vector>

#include "executor/cuda/gemm_plan.h"

namespace optimus::executor::cuda {

inline void ReferenceGemm(const GemmProblem& p, const std::vector<double>& a, std::int64_t at_a,
                          const std::vector<double>& b, std::int64_t at_b, std::vector<double>& c,
                          std::int64_t at_c) {
  const auto element = [](const std::vector<double>& x, std::int64_t at, bool transpose,
                          std::int64_t ld, std::int64_t row, std::int64_t column) {
    return x.at(static_cast<std::size_t>(at + (transpose ? row * ld + column : column * ld + row)));
  };
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      for (std::int64_t row = 0; row < p.m; ++row) {
        double sum = 0;
        for (std::int64_t i = 0; i < p.k; ++i) {
          sum += element(a, at_a + batch * p.stride_a, p.transpose_a, p.lda, row, i) *
                 element(b, at_b + batch * p.stride_b, p.transpose_b, p.ldb, i, column);
        }
        double& out =
            c.at(static_cast<std::size_t>(at_c + batch * p.stride_c + column * p.ldc + row));
        // BLAS: what beta = 0 multiplies is not read.
        out = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * out);
      }
    }
  }
}

}  // namespace optimus::executor::cuda
