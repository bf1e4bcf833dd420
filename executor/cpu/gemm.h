#pragma once
// Real f32 matrix products on the CPU, by oneDNN, on the calling thread alone.

#include <cstdint>

#include "absl/status/status.h"

namespace optimus::executor {

enum class Transpose : std::uint8_t { kNo, kYes };

// A matrix by rows: element (i, j) lies at data[i * stride + j].
struct ConstMatrix {
  const float* data = nullptr;
  std::int64_t stride = 0;
  Transpose transpose = Transpose::kNo;  // kYes: what lies there is the transposed operand
};
struct Matrix {
  float* data = nullptr;
  std::int64_t stride = 0;
};

// C[m,n] = alpha op(A)[m,k] op(B)[k,n] + beta C. beta 0: C need not be initialised. `c` overlaps
// neither operand. INVALID_ARGUMENT where a stride is shorter than a row or a size is negative;
// with any size 0, what is left of the sum is done (C = beta C). INTERNAL names oneDNN's code.
absl::Status Gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, ConstMatrix a,
                  ConstMatrix b, float beta, Matrix c);

// oneDNN works on the calling thread alone from here on, without a team of its own. The functions
// above call it themselves.
void UseOneThread();

}  // namespace optimus::executor
