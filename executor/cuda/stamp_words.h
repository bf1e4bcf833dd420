#pragma once
// A Stamp as the GPU sees it: seven words, compared under a mask.

#include <array>
#include <bit>
#include <cstdint>

#include "executor/runtime/stamp.h"

namespace optimus::executor::cuda {

inline constexpr int kStampWords = 7;
using StampWords = std::array<std::uint32_t, kStampWords>;
static_assert(sizeof(StampWords) == sizeof(Stamp));

inline StampWords ToWords(const Stamp& stamp) { return std::bit_cast<StampWords>(stamp); }
inline Stamp FromWords(const StampWords& words) { return std::bit_cast<Stamp>(words); }

// Bits of words that must agree: all of them, and those that SameCollective looks at (rank and
// operation are each member's own).
inline constexpr std::uint32_t kAllWords = 0x7f;
inline constexpr std::uint32_t kCollectiveWords = kAllWords & ~0x3U;

}  // namespace optimus::executor::cuda
