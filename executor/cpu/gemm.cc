#include "executor/cpu/gemm.h"

#include <omp.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "dnnl.h"

namespace optimus::executor {
namespace {

// Rows of an operand [rows, columns] as it lies in memory.
std::int64_t StoredColumns(Transpose transpose, std::int64_t rows, std::int64_t columns) {
  return transpose == Transpose::kYes ? rows : columns;
}

absl::Status CheckStride(const char* name, std::int64_t stride, std::int64_t columns) {
  if (stride >= columns) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("gemm: stride of ", name, " is ", stride,
                                                 ", but its rows have ", columns,
                                                 " elements; hint: a stride counts elements"));
}

// oneDNN refuses empty operands, and with k = 0 there is nothing to add.
void Scale(std::int64_t m, std::int64_t n, float beta, Matrix c) {
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = c.data + i * c.stride;
    if (beta == 0) {
      std::fill(row, row + n, 0.0F);
    } else {
      std::transform(row, row + n, row, [beta](float x) { return beta * x; });
    }
  }
}

char Letter(Transpose transpose) { return transpose == Transpose::kYes ? 'T' : 'N'; }

}  // namespace

// The number of threads belongs to the calling thread, so this leaves others as they are.
void UseOneThread() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

absl::Status Gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, ConstMatrix a,
                  ConstMatrix b, float beta, Matrix c) {
  if (m < 0 || n < 0 || k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("gemm: m ", m, ", n ", n, ", k ", k, " must not be negative"));
  }
  if (absl::Status s = CheckStride("A", a.stride, StoredColumns(a.transpose, m, k)); !s.ok())
    return s;
  if (absl::Status s = CheckStride("B", b.stride, StoredColumns(b.transpose, k, n)); !s.ok())
    return s;
  if (absl::Status s = CheckStride("C", c.stride, n); !s.ok()) return s;
  if (m == 0 || n == 0 || k == 0) {
    Scale(m, n, beta, c);
    return absl::OkStatus();
  }
  UseOneThread();
  const dnnl_status_t status =
      dnnl_sgemm(Letter(a.transpose), Letter(b.transpose), m, n, k, alpha, a.data, a.stride, b.data,
                 b.stride, beta, c.data, c.stride);
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("gemm m ", m, ", n ", n, ", k ", k, ": oneDNN's code is ",
                                          static_cast<int>(status)));
}

}  // namespace optimus::executor
