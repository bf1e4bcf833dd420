#include "executor/mpi/sum.h"

#include <algorithm>

namespace optimus::executor {
namespace {

void Add(const float* __restrict a, const float* __restrict b, std::int64_t floats,
         float* __restrict out) {
  for (std::int64_t i = 0; i < floats; ++i) out[i] = a[i] + b[i];
}

void Accumulate(const float* __restrict a, std::int64_t floats, float* __restrict out) {
  for (std::int64_t i = 0; i < floats; ++i) out[i] += a[i];
}

}  // namespace

// In pieces that stay in the first-level cache, so that memory is read and written once.
void SumParts(const std::vector<const float*>& parts, std::int64_t floats, float* out) {
  constexpr std::int64_t kPiece = 2048;
  if (parts.size() == 1) {
    std::copy_n(parts[0], floats, out);
    return;
  }
  for (std::int64_t first = 0; first < floats; first += kPiece) {
    const std::int64_t length = std::min(kPiece, floats - first);
    Add(parts[0] + first, parts[1] + first, length, out + first);
    for (std::size_t part = 2; part < parts.size(); ++part) {
      Accumulate(parts[part] + first, length, out + first);
    }
  }
}

}  // namespace optimus::executor
