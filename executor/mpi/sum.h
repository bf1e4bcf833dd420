#pragma once
// The reduction of a collective.

#include <cstdint>
#include <vector>

namespace optimus::executor {

// out[i] = parts[0][i] + parts[1][i] + ..., added in this order; at least one part. `out` overlaps
// none of them.
void SumParts(const std::vector<const float*>& parts, std::int64_t floats, float* out);

}  // namespace optimus::executor
