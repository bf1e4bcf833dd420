#pragma once
// How a kernel gets on while collectives of its GPU slow it down.
//
// Work is counted in units so small that nothing is ever rounded: in a picosecond a whole number of
// them is done, whatever the factor. A kernel ends at the first whole picosecond at which its work
// is done; what is done beyond it goes to a kernel that follows at once. So the end does not depend
// on how often, or in which order within an instant, collectives come and go, nor on which kernels
// are run as one step.

#include <cstdint>

#include "base/cost_model.h"

namespace optimus::sim {

using WorkUnits = __int128;  // a step of 12 days under factors with six decimals fits

// What an operation has to do with overlap.
enum class OverlapRole : std::uint8_t {
  kNone,
  kKernel,  // is slowed
  kNvlink,  // slows kernels: a collective over NVLink
  kNic,     // slows kernels: a collective over the network card
};

// Factors as fractions: six decimals count.
class OverlapRates {
 public:
  // Factors from 1 to kMostInterference.
  explicit OverlapRates(const Interference& factors);
  // Of what lasts so many picoseconds undisturbed.
  WorkUnits WorkOf(std::int64_t picoseconds) const {
    return static_cast<WorkUnits>(picoseconds) * alone_;
  }
  // Units done in a picosecond, while collectives over NVLink or the network card run or not. Under
  // both, the larger factor holds.
  std::int64_t PerPicosecond(bool nvlink, bool nic) const {
    return rates_[(nvlink ? 1 : 0) + (nic ? 2 : 0)];
  }

 private:
  std::int64_t alone_ = 1;
  std::int64_t rates_[4] = {1, 1, 1, 1};
};
inline constexpr double kMostInterference = 10;

// How far the compute stream of an entity is in a step of role kKernel.
struct ComputeState {
  std::int64_t start = 0;            // of the step; picoseconds
  std::int64_t since = 0;            // when `left` was left; also after the end
  WorkUnits left = 0;                // below 0: done beyond the end
  std::int64_t rate = 1;             // units per picosecond
  std::int32_t nvlink = 0, nic = 0;  // collectives in flight

  void Start(std::int64_t now, WorkUnits work) {
    if (since != now || left > 0) left = 0;
    left += work;
    since = now;
    start = now;
  }
  // Counts what was done until `now`.
  void Settle(std::int64_t now) {
    left -= static_cast<WorkUnits>(now - since) * rate;
    since = now;
  }
  // If the rate stays.
  std::int64_t End() const { return since + PicosecondsFor(left); }
  // Until so many units are done: whole picoseconds, at least as long as it takes.
  std::int64_t PicosecondsFor(WorkUnits units) const {
    if (units <= 0) return 0;
    // Mostly 64 bits are enough, and dividing them is faster.
    constexpr auto kSmall = static_cast<WorkUnits>(1) << 62;
    if (units < kSmall) return (static_cast<std::int64_t>(units) + rate - 1) / rate;
    return static_cast<std::int64_t>((units + rate - 1) / rate);
  }
};

}  // namespace optimus::sim
