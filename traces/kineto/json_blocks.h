#pragma once
// Brackets of a JSON text outside of its strings, 64 bytes at a time: one bit a byte.

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace optimus::traces {

inline constexpr std::size_t kBlock = 64;

#if defined(__SSE2__)
// One bit for each of 64 bytes that is `c`, where `fold` was set in all of them first.
class BlockBytes {
 public:
  explicit BlockBytes(const char* data) {
    for (int i = 0; i < 4; ++i) {
      parts_[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + std::ptrdiff_t{16} * i));
    }
  }
  std::uint64_t Equal(char c, char fold = 0) const {
    std::uint64_t mask = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i folded = _mm_or_si128(parts_[i], _mm_set1_epi8(fold));
      const int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(folded, _mm_set1_epi8(c)));
      mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(bits)) << (16 * i);
    }
    return mask;
  }

 private:
  __m128i parts_[4];
};
#else
class BlockBytes {
 public:
  explicit BlockBytes(const char* data) : data_(data) {}
  std::uint64_t Equal(char c, char fold = 0) const {
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      mask |= static_cast<std::uint64_t>(static_cast<char>(data_[i] | fold) == c) << i;
    }
    return mask;
  }

 private:
  const char* data_;
};
#endif

struct Brackets {
  std::uint64_t open = 0;   // { and [
  std::uint64_t close = 0;  // } and ]
};

class JsonBlocks {
 public:
  // Of the 64 bytes that follow those of the last call.
  Brackets Next(const char* data) {
    const BlockBytes bytes(data);
    const std::uint64_t strings = InsideStrings(bytes);
    // '[' | 0x20 is '{', and ']' | 0x20 is '}'; no other byte of text becomes one of them.
    return {bytes.Equal('{', 0x20) & ~strings, bytes.Equal('}', 0x20) & ~strings};
  }
  // Whether the last block ended inside a string.
  bool in_string() const { return in_string_ != 0; }

 private:
  std::uint64_t InsideStrings(const BlockBytes& bytes) {
    std::uint64_t inside = bytes.Equal('"') & ~Escaped(bytes.Equal('\\'));
    // Exclusive-or of all lower bits: set from an opening quote up to before the closing one.
    for (int shift = 1; shift < 64; shift *= 2) inside ^= inside << shift;
    inside ^= in_string_;
    in_string_ = 0 - (inside >> 63);
    return inside;
  }

  // Bytes with an odd number of backslashes before them. Backslashes are rare: one by one.
  std::uint64_t Escaped(std::uint64_t backslashes) {
    std::uint64_t escaped = escape_next_ ? 1 : 0;
    backslashes &= ~escaped;
    escape_next_ = false;
    while (backslashes != 0) {
      const std::uint64_t first = backslashes & (0 - backslashes);
      if (first >> 63 != 0) {
        escape_next_ = true;
        break;
      }
      escaped |= first << 1;
      backslashes &= ~(first | (first << 1));
    }
    return escaped;
  }

  std::uint64_t in_string_ = 0;  // all bits set, or none
  bool escape_next_ = false;
};

}  // namespace optimus::traces
