#include "sim/overlap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace optimus::sim {
namespace {

struct Fraction {
  std::int64_t numerator = 1, denominator = 1;
};

Fraction SixDecimals(double factor) {
  constexpr std::int64_t kMillion = 1'000'000;
  const std::int64_t millionths = std::llround(factor * kMillion);
  const std::int64_t divisor = std::gcd(millionths, kMillion);
  return {millionths / divisor, kMillion / divisor};
}

}  // namespace

// Undisturbed, numerator_nvlink * numerator_nic units are done in a picosecond; both slower rates
// are whole numbers then.
OverlapRates::OverlapRates(const Interference& factors) {
  const Fraction nvlink = SixDecimals(factors.kernel_under_nvlink);
  const Fraction nic = SixDecimals(factors.kernel_under_nic);
  alone_ = nvlink.numerator * nic.numerator;
  rates_[0] = alone_;
  rates_[1] = nvlink.denominator * nic.numerator;
  rates_[2] = nic.denominator * nvlink.numerator;
  rates_[3] = std::min(rates_[1], rates_[2]);
}

}  // namespace optimus::sim
