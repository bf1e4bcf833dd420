#pragma once
// When an event on the GPU happened by the host's clock. Events know only the time between each
// other, so a few of them are bracketed by looks at the host's clock: each bracket bounds the
// moment of the first event, and the bounds together are tighter than any of them.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace optimus::executor::cuda {

class ClockFit {
 public:
  // An event `since_origin_ns` after the origin happened between two looks at the host's clock.
  void Add(std::int64_t before_ns, std::int64_t after_ns, double since_origin_ns) {
    const auto since = static_cast<std::int64_t>(since_origin_ns);
    earliest_ = std::max(earliest_, before_ns - since);
    latest_ = std::min(latest_, after_ns - since);
  }
  // The middle of what is possible. (Clocks that drift apart could leave nothing; the middle is
  // still the best guess.)
  std::int64_t origin_ns() const { return earliest_ + (latest_ - earliest_) / 2; }
  // Half of what is possible.
  std::int64_t uncertainty_ns() const { return std::max<std::int64_t>(0, latest_ - earliest_) / 2; }

 private:
  std::int64_t earliest_ = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t latest_ = std::numeric_limits<std::int64_t>::max() / 2;
};

}  // namespace optimus::executor::cuda
