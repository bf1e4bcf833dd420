#pragma once
// Strong types for physical quantities. Every public interface uses these instead of raw numbers.
//
// Time is a whole number of picoseconds (int64: 106 days). Durations are rounded to a picosecond
// once, where they are priced; from then on sums are exact, so that busy + bubbles = step holds to
// the last bit and sub-microsecond kernels survive. See docs/decisions/001-integer-picoseconds.md.

#include <cmath>
#include <compare>
#include <cstdint>

namespace optimus {

template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.value_ * k); }
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }

 private:
  Rep value_{};
};

using Picoseconds = Quantity<struct PicosecondsTag, std::int64_t>;
using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag, double>;  // floating-point operations: 5e18 a step and more
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

inline constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;

constexpr double ToSeconds(Picoseconds t) {
  return static_cast<double>(t.value()) / static_cast<double>(kPicosecondsPerSecond);
}

constexpr double ToMicroseconds(Picoseconds t) { return static_cast<double>(t.value()) / 1e6; }

// Rounding saturates, a quarter of the way to overflow: a price that is far too large stays a large
// one (about 27 days, or 2 EiB), and a few of them can still be added. What was no number is large.
inline constexpr std::int64_t kLargestRounded = std::int64_t{1} << 61;

inline std::int64_t RoundSaturated(double value) {
  constexpr auto kLargest = static_cast<double>(kLargestRounded);
  if (!(value < kLargest)) return kLargestRounded;  // NaN as well
  if (value <= -kLargest) return -kLargestRounded;
  return std::llround(value);
}
inline Picoseconds FromSeconds(double seconds) {
  return Picoseconds(RoundSaturated(seconds * static_cast<double>(kPicosecondsPerSecond)));
}
inline Bytes RoundToBytes(double bytes) { return Bytes(RoundSaturated(bytes)); }
inline Picoseconds TransferTime(Bytes bytes, BytesPerSecond rate) {
  return FromSeconds(static_cast<double>(bytes.value()) / rate.value());
}
inline Picoseconds ComputeTime(Flops flops, FlopsPerSecond rate) {
  return FromSeconds(flops.value() / rate.value());
}
constexpr double ToGib(Bytes b) {
  return static_cast<double>(b.value()) / (1024.0 * 1024.0 * 1024.0);
}

}  // namespace optimus
