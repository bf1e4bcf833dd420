#pragma once
// Sizes in memory, also of shapes that nobody has looked at yet: whether there is memory for a
// kernel is asked before oneDNN is.

#include <cstdint>
#include <initializer_list>

namespace optimus::executor {

// More than any memory; a few dozen of them can still be added.
inline constexpr std::int64_t kEndless = std::int64_t{1} << 57;

// Of factors from 0 on; at most kEndless.
constexpr std::int64_t SaturatedProduct(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  bool endless = false;
  for (const std::int64_t factor : factors) {
    if (factor == 0) {
      return 0;
    }
    endless = endless || product > kEndless / factor;
    product = endless ? kEndless : product * factor;
  }
  return product;
}

// The least multiple of `unit` that is not below `value`.
constexpr std::int64_t RoundUp(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace optimus::executor
